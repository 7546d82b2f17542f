"""A second connection to a database wants to write while the first has an open transaction in the same thread."""

import sqlite3
import tempfile
from pathlib import Path

FOR_EVER = 10**6

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "numbers.db"
    first = sqlite3.connect(path, timeout=FOR_EVER)
    first.execute("create table numbers (number)")
    first.commit()
    first.execute("insert into numbers values (1)")
    second = sqlite3.connect(path, timeout=FOR_EVER)
    second.execute("insert into numbers values (2)")  # hangs here
    print("done")
