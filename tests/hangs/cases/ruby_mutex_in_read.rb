# A thread holds a mutex while it reads what a child writes; the child waits for what main writes under the mutex.
mutex = Mutex.new
child = IO.popen("cat", "r+")
reader = Thread.new { mutex.synchronize { child.gets } }
sleep 0.3
mutex.synchronize { child.puts "x" } # hangs here
reader.join
