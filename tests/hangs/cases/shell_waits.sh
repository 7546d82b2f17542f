# A shell waits for the signal of a child's end; the child waits for a lock that it holds itself.
python3 -c '
import threading
lock = threading.Lock()
lock.acquire()
lock.acquire()
' &
wait # hangs here
echo done
