"""The constructor of a library starts a thread that loads another library, and joins it."""

import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = """
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

static void *load(void *nothing) {
  (void)nothing;
  return dlopen("libresolv.so.2", RTLD_NOW);
}

__attribute__((constructor)) static void prepare(void) {
  pthread_t loader;
  pthread_create(&loader, NULL, load, NULL);
  pthread_join(loader, NULL);
}
"""

with tempfile.TemporaryDirectory() as folder:
    library = Path(folder) / "library.so"
    command = ["cc", "-shared", "-fPIC", "-pthread", "-x", "c", "-o", str(library), "-"]
    subprocess.run(command, input=SOURCE.encode(), check=True)
    loaded = ctypes.CDLL(str(library))  # hangs here
sys.exit(loaded is None)
