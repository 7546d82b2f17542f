# A tool below `make -j2` takes two tokens of its jobserver, of which there is one.
cd "$(mktemp --directory)" || exit
export TMPDIR=$PWD # for the FIFO of make 4.4: nobody else knows this folder
cat > tool.py <<'TOOL'
import os
import re
import select

auth = re.search(r"jobserver-(?:auth|fds)=([^, ]+)", os.environ["MAKEFLAGS"])[1]
reads = os.open(auth.removeprefix("fifo:"), os.O_RDONLY) if auth.startswith("fifo:") else int(auth)
for _ in range(2):
    select.select([reads], [], [])
    os.read(reads, 1)
TOOL
printf 'all:\n\t+@python3 tool.py\n' > Makefile
make -j2
