"""A rank of MPI that waits for another, which computes or sleeps for some seconds."""

import os
import sys
import time

if "OMPI_COMM_WORLD_RANK" not in os.environ:  # as `mpirun -n 2 python3 PROGRAM` would start it
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    os.execvp(mpirun[0], [*mpirun, sys.executable, *sys.argv])

from mpi4py import MPI  # noqa: E402

ranks = MPI.COMM_WORLD
if ranks.rank == 0:
    ranks.recv(source=1)
    print("done")
elif sys.argv[2] == "sleeps":
    time.sleep(float(sys.argv[1]))  # it is late: that is what this is about
    ranks.send("late", dest=0)
else:
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        sum(range(1_000_000))
    ranks.send("late", dest=0)
