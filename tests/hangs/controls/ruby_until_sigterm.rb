# Idles until SIGTERM, which its trap or a rescue turns into an orderly end. Looks like a pipe that nobody will close.
how = ARGV.last
reader, writer = IO.pipe
trap("TERM") { writer.puts "stop" } if how == "trap"
begin
  puts "ready #{Process.pid}"
  $stdout.flush
  how == "sleep" ? sleep : reader.gets
rescue SignalException
  writer.close
end
puts "done"
