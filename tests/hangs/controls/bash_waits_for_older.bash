# The same by bash, which waits in its builtin as it waits for a command: for any child.
. "${0%/*}/shell_waits_for_older.sh" "$1"
