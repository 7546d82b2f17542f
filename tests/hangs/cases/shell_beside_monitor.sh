# A shell has started a monitor, which wakes up now and then, and waits for a program that takes a lock twice.
while sleep 0.05; do :; done &
python3 -c '
import threading
lock = threading.Lock()
lock.acquire()
lock.acquire()
' # hangs here
kill $!
echo done
