# A parent reads what a child writes to its end, and has the writing end open itself (IO.pipe: close the ends not used).
input, output = IO.pipe
child = fork do
  input.close
  output.puts "hello"
end
puts input.read # hangs here
Process.wait(child)
puts "done"
