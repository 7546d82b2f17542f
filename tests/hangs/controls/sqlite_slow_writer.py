"""A process waits for a database, which another has locked for some seconds."""

import multiprocessing
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

FOR_EVER = 10**6


def hold(path: Path, locked, seconds: float) -> None:
    connection = sqlite3.connect(path)
    connection.execute("insert into numbers values (1)")
    locked.set()
    time.sleep(seconds)
    connection.commit()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "numbers.db"
        sqlite3.connect(path).execute("create table numbers (number)")
        context = multiprocessing.get_context("fork")
        locked = context.Event()
        holder = context.Process(target=hold, args=(path, locked, float(sys.argv[1])))
        holder.start()
        locked.wait()
        connection = sqlite3.connect(path, timeout=FOR_EVER)
        connection.execute("insert into numbers values (2)")
        connection.commit()
        holder.join()
    print("done")
