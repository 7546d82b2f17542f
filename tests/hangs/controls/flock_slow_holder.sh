# Two shells want a file's lock; the first holds it for a while.
seconds=$1
cd "$(mktemp --directory)" || exit
flock file sleep "$seconds" &
flock file true &
wait
echo done
