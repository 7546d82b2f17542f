# A tool below `make -j2` waits for a token of its jobserver, which another rule has for some seconds.
seconds=$1
cd "$(mktemp --directory)" || exit
cat > tool.py <<'TOOL'
import os
import re
import select
import time

fifo, reads, writes = re.search(r"jobserver-(?:auth|fds)=(?:fifo:(\S+)|(\d+),(\d+))", os.environ["MAKEFLAGS"]).groups()
if fifo:  # of make 4.4
    reads = writes = os.open(fifo, os.O_RDWR)
time.sleep(0.2)
select.select([int(reads)], [], [])  # make 4.3 has made it non-blocking
os.write(int(writes), os.read(int(reads), 1))
TOOL
printf 'all: slow tool\n\nslow:\n\t@sleep %s\n\ntool:\n\t+@python3 tool.py\n' "$seconds" > Makefile
make --silent --jobs 2
echo done
