"""Two ranks of MPI: each receives before it sends, and both keep a CPU busy while they wait."""

import os
import sys

if "OMPI_COMM_WORLD_RANK" not in os.environ:  # as `mpirun -n 2 python3 PROGRAM` would start it
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    os.execvp(mpirun[0], [*mpirun, sys.executable, *sys.argv])

from mpi4py import MPI  # noqa: E402

ranks = MPI.COMM_WORLD
other = 1 - ranks.rank
ranks.recv(source=other)  # blocks here
ranks.send("hello", dest=other)
