# A tool below `make -j2` takes two tokens of its jobserver, of which there is one.
cd "$(mktemp --directory)" || exit
cat > tool.py <<'TOOL'
import os
import re
import select

reads = int(re.search(r"jobserver-(?:auth|fds)=(\d+)", os.environ["MAKEFLAGS"])[1])
for _ in range(2):
    select.select([reads], [], [])
    os.read(reads, 1)
TOOL
printf 'all:\n\t+@python3 tool.py\n' > Makefile
make -j2
