# A thread holds a mutex while it reads what a child writes after some seconds. Argument: the seconds.
mutex = Mutex.new
child = IO.popen(["sh", "-c", "sleep #{ARGV[0]}; echo x; cat"], "r+")
reader = Thread.new { mutex.synchronize { child.gets } }
sleep 0.3
mutex.synchronize { child.puts "x" }
reader.join
child.close_write
child.read
puts "done"
