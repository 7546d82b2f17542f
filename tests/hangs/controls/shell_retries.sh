# A shell that runs a command that fails, or a part of itself, again and again until it succeeds.
folder=$(mktemp -d)
(sleep "$1" && touch "$folder/ready") &
if [ "$2" = part ]; then
  until (test -e "$folder/ready"); do
    sleep 0.2
  done
else
  until sh -c 'test -e "$1/ready"; exit' test "$folder"; do
    sleep 0.2
  done
fi
wait
rm -r "$folder"
echo done
