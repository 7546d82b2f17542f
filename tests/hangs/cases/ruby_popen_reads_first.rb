# Reads to its end what `cat` writes, and has not closed the input of `cat`: IO.popen needs close_write first.
IO.popen("cat", "r+") do |pipe|
  pipe.puts "hello"
  puts pipe.read
end
