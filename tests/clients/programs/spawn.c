/* MPI_Comm_spawn of one more rank of the same program. */
#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Comm parent, both;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL) MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &both, MPI_ERRCODES_IGNORE);
  MPI_Finalize();
  return 0;
}
