// Two ranks of MPI: one waits for a message of the other, which computes for SECONDS first.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (getenv("OMPI_COMM_WORLD_RANK") == NULL) {  // as `mpirun -n 2 PROGRAM SECONDS` would start it
    execlp("mpirun", "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", argv[0], argv[1], (char*)NULL);
    return 1;
  }
  int rank = 0;
  double sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    MPI_Recv(&sum, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    puts("done");
  } else {
    const double until = MPI_Wtime() + atof(argv[1]);
    for (double i = 1; MPI_Wtime() < until; ++i) sum += 1 / i;
    MPI_Send(&sum, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
  }
  return MPI_Finalize();
}
