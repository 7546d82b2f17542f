# A shell waits, by the signal of its end, for a slow child, and a sort for its input.
seconds=$1
sleep "$seconds" &
wait
(
  sleep "$seconds"
  echo done
) | sort
