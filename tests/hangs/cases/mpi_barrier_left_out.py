"""Two ranks of MPI: one waits at a barrier, the other leaves it out and ends, which it can only with all others."""

import os
import sys

if "OMPI_COMM_WORLD_RANK" not in os.environ:  # as `mpirun -n 2 python3 PROGRAM` would start it
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    os.execvp(mpirun[0], [*mpirun, sys.executable, *sys.argv])

from mpi4py import MPI  # noqa: E402

ranks = MPI.COMM_WORLD
if ranks.rank == 0:
    ranks.Barrier()  # blocks here
