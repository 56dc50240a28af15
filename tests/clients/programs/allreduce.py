"""The same with mpi4py: sums of numbers and of arrays, and where each rank is."""
import os

from mpi4py import MPI

world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
names = world.gather(MPI.Get_processor_name())
everybody = world.bcast({"from": world.rank} if world.rank == 0 else None)
assert everybody == {"from": 0}
print(f"rank {world.rank} of {world.size} on {MPI.Get_processor_name()} sum {total} gpus "
      f"{os.environ.get('CUDA_VISIBLE_DEVICES', '-')}", flush=True)
if world.rank == 0:
    print("nodes", " ".join(names), flush=True)
