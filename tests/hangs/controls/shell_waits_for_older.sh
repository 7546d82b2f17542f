# A shell waits for the first of two children; the second one is idle until it is ended.
seconds=$1
python3 -c '
import sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    pass
' "$seconds" &
worker=$!
python3 -c '
import threading
idle = threading.Thread(target=threading.Event().wait)
idle.start()
idle.join()
' &
idle=$!
wait "$worker"
kill "$idle"
echo done
