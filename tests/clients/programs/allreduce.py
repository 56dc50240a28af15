"""The same with mpi4py: sums, a broadcast, and where each rank is. One rank says it for all: mpirun may mix lines."""
import os

from mpi4py import MPI

world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
everybody = world.bcast({"from": world.rank} if world.rank == 0 else None)
assert everybody == {"from": 0}
lines = world.gather(f"rank {world.rank} of {world.size} on {MPI.Get_processor_name()} sum {total} gpus "
                     f"{os.environ.get('CUDA_VISIBLE_DEVICES', '-')}")
if world.rank == 0:
    print("\n".join(lines), flush=True)
