# Two processes open two FIFOs, in opposite order.
folder=$(mktemp -d)
mkfifo "$folder/there" "$folder/back"
(
  echo question >"$folder/there"
  echo end >"$folder/back"
) &
read -r answer <"$folder/back" # hangs here
read -r question <"$folder/there"
wait
echo "done: $question $answer"
