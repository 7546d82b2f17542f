# Idle until SIGINT, which a trap of its own answers.
trap 'echo done; exit' INT
echo ready $$
exec 3<> <(:)
read -r line <&3
