# The same in bash, whose builtin makes the same system call as its wait for a command.
. "${0%/*}/shell_waits_for_older.sh" "$1"
