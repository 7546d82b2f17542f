#!/bin/sh
# Waits for commands at a FIFO with a random name, which it writes to a file; it has both ends open, to find no end.
folder=$(mktemp -d)
mkfifo "$folder/fifo"
exec 3<> "$folder/fifo"
echo "$folder/fifo" > "$1"
echo ready
read -r line <&3
rm -r "$folder"
echo "$line" done
