// Two ranks of MPI: each receives before it sends, and both keep a CPU busy while they wait.
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (getenv("OMPI_COMM_WORLD_RANK") == NULL) {  // as `mpirun -n 2 PROGRAM` would start it
    execlp("mpirun", "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", argv[0], (char*)NULL);
    return 1;
  }
  int rank = 0, message = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Recv(&message, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(&message, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD);
  return MPI_Finalize();
}
