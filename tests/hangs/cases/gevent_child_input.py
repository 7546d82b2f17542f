"""A patched program waits for a child that reads what the program has not closed."""

from gevent import monkey

monkey.patch_all()

import subprocess  # noqa: E402

if __name__ == "__main__":
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    child.wait()
    print("done")
