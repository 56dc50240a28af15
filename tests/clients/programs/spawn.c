/* MPI_Comm_spawn: two ranks start three more, all five add up their numbers, and each new one says where it is. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm parent, both, all;
  int rank, size, sum, mine;
  MPI_Comm_get_parent(&parent);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (parent == MPI_COMM_NULL) {
    int codes[3];
    char* words[] = {"from the parent", NULL};
    MPI_Comm_spawn(argv[0], words, 3, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &both, codes);
    MPI_Intercomm_merge(both, 0, &all);
  } else {
    MPI_Intercomm_merge(parent, 1, &all);
    printf("spawned %d in step %s hears: %s\n", rank, getenv("SLURM_STEP_ID"), argc > 1 ? argv[1] : "nothing");
  }
  MPI_Comm_size(all, &size);
  MPI_Comm_rank(all, &mine);
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, all);
  if (mine == 0) printf("size %d sum %d\n", size, sum);
  fflush(stdout);
  MPI_Comm_free(&all);
  MPI_Finalize();
  return 0;
}
