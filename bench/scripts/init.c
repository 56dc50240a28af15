// How long MPI_Init takes: the longest of all ranks, said by the first.
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(int argc, char** argv) {
  double began = now(), took, most;
  int rank, size;
  MPI_Init(&argc, &argv);
  took = now() - began;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Reduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("ranks %d\ninit ms %.1f\n", size, most);
  MPI_Finalize();
  return 0;
}
