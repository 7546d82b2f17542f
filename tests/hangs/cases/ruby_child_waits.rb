# Process.wait waits for a child that reads a pipe to its end, and has the writing end open itself.
input, _output = IO.pipe
child = fork { input.read }
Process.wait(child) # hangs here
puts "done"
