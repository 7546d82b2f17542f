#!/bin/sh
# Has timeout(1) end its child.
timeout "$1" python3 "$(dirname "$0")/stuck_child.py"
test $? -eq 124 && echo done
