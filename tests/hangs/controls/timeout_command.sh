#!/bin/sh
# A program that waits forever for the named pipe it is given, under timeout(1), which ends it.
timeout "$2" cat "$1"
test $? -eq 124 && echo done
