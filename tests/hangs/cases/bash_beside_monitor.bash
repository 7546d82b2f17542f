# The same in bash, whose builtin `wait` has waited for an older child before. The program is the last command of a
# pipeline. The monitor's sleep is what it does: it wakes up now and then.
python3 -c 'import time
while True: time.sleep(0.05)' &
true &
wait $!
echo input | python3 -c '
import threading
lock = threading.Lock()
lock.acquire()
lock.acquire()
' # hangs here
kill %1
echo done
