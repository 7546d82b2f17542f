# A shell that runs a command that fails, again and again, until it succeeds.
folder=$(mktemp -d)
(sleep "$1" && touch "$folder/ready") &
until sh -c 'test -e "$1/ready"; exit' test "$folder"; do
  sleep 0.2
done
wait
rm -r "$folder"
echo done
