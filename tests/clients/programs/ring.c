// A token goes round, ranks are summed; each rank says where it is and what it sees. "abort": the last rank aborts with
// 7. "exit": the last rank goes without a word.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, token = 0, sum = 0, length;
  char host[MPI_MAX_PROCESSOR_NAME];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > 1 && rank == 0) {
    MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(&token, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (size > 1) {
    MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ++token;
    MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
  }
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (argc > 1 && strcmp(argv[1], "abort") == 0 && rank == size - 1) MPI_Abort(MPI_COMM_WORLD, 7);
  if (argc > 1 && strcmp(argv[1], "abort") == 0) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Get_processor_name(host, &length);
  const char* gpus = getenv("CUDA_VISIBLE_DEVICES");
  const char* cpus = getenv("BERTH_TASK_CPUS");
  printf("rank %d of %d on %s sum %d token %d gpus %s cpus %s\n", rank, size, host, sum, token, gpus ? gpus : "-",
         cpus ? cpus : "-");
  MPI_Finalize();
  return 0;
}
