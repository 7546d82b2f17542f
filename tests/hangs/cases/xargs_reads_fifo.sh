# xargs waits for programs that read a FIFO, which they and xargs have open for writing themselves. It handles SIGUSR1,
# by which a user asks for more programs at the same time.
folder=$(mktemp -d)
mkfifo "$folder/fifo"
exec 3<>"$folder/fifo"
printf '%s\n' 1 2 | xargs -P2 -I{} sh -c 'read -r line <&3' # hangs here
