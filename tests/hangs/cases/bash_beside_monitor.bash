# The same by bash, which has waited for an older child before, for the last command of a pipeline.
python3 -c 'import time
while True: time.sleep(0.05)' &
sleep 0.1 &
wait $!
echo input | python3 -c '
import threading
lock = threading.Lock()
lock.acquire()
lock.acquire()
' # hangs here
kill %1
echo done
