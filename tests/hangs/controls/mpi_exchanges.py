"""Ranks of MPI that do nothing but send each other the same messages, for some seconds, and then end."""

import os
import sys
import time

if "OMPI_COMM_WORLD_RANK" not in os.environ:  # as `mpirun -n 2 python3 PROGRAM` would start it
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    os.execvp(mpirun[0], [*mpirun, sys.executable, *sys.argv])

from mpi4py import MPI  # noqa: E402


class Exchange:
    """What changes while it runs is in no variable of a function."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.begin = time.monotonic()
        self.ranks = MPI.COMM_WORLD
        self.block = bytearray(64 << 20)

    def is_over(self) -> bool:
        return bool(self.ranks.bcast(time.monotonic() - self.begin > self.seconds))

    def run(self) -> None:
        while not self.is_over():
            self.ranks.Bcast(self.block)


Exchange(float(sys.argv[1])).run()
if MPI.COMM_WORLD.rank == 0:
    print("done")
