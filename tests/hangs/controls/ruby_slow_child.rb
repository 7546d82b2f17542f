# Process.wait waits for a child that takes its time to write to a pipe, which a thread reads.
seconds = ARGV[0].to_f
input, output = IO.pipe
child = fork do
  input.close
  sleep seconds
  output.write "answer"
end
output.close
answers = Queue.new
reader = Thread.new { answers << input.read }
Process.wait(child)
reader.join
raise "no answer" unless answers.pop == "answer"
puts "done"
