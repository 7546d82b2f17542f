# A coprocess that sorts answers at the end of its input, which bash has open while it waits for the answer.
coproc sort
echo one >&"${COPROC[1]}"
read -r answer <&"${COPROC[0]}" # hangs here
echo "done: $answer"
