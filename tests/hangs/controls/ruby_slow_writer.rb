# A parent reads what a child writes to its end; the child writes slowly.
input, output = IO.pipe
child = fork do
  input.close
  sleep ARGV[0].to_f
  output.puts "hello"
end
output.close
raise "not all has come" if input.read != "hello\n"
Process.wait(child)
puts "done"
