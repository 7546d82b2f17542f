#!/bin/sh
# A FIFO in a folder that no other user may enter: a process outside, which knows its name, writes to it.
mkdir -m 700 "$1"
mkfifo "$1/fifo"
echo ready
if [ "$2" = opens ]; then
  read -r line < "$1/fifo"
else
  exec 3<> "$1/fifo"
  read -r line <&3
fi
echo "$line" done
