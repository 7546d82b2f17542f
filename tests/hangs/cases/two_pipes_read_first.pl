# Two pipes connect parent and child, and what they write stays in their buffers while both read.
pipe(FROM_CHILD, TO_PARENT);
pipe(FROM_PARENT, TO_CHILD);
my $child = fork();
if ($child == 0) {
  while (my $line = <FROM_PARENT>) { print TO_PARENT $line; }
  exit 0;
}
print TO_CHILD "question\n";
my $answer = <FROM_CHILD>;    # hangs here
waitpid($child, 0);
print "done\n";
