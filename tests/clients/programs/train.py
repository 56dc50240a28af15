"""Trains a small net on made-up data, data parallel, over whoever the variables say there is. The last line of rank 0
is the loss over all data: the same whatever the number of processes, as each has an equal share."""
import os
import sys

import torch
import torch.distributed as dist

torch.manual_seed(1)
torch.set_num_threads(1)
samples = 64
inputs = torch.randn(samples, 8)
targets = torch.sin(inputs.sum(dim=1, keepdim=True))
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
rank, size = 0, 1
model = net
if "alone" not in sys.argv:
    dist.init_process_group("gloo", init_method="env://")
    rank, size = dist.get_rank(), dist.get_world_size()
    model = torch.nn.parallel.DistributedDataParallel(net)
mine = slice(rank * samples // size, (rank + 1) * samples // size)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(30):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(inputs[mine]), targets[mine]).backward()
    optimizer.step()
with torch.no_grad():
    loss = torch.nn.functional.mse_loss(net(inputs), targets).item()
print(f"rank {rank} of {size} local {os.environ.get('LOCAL_RANK', '-')} on {os.uname().nodename} port "
      f"{os.environ.get('MASTER_PORT', '-')}", flush=True)
if size > 1:
    dist.barrier()
if rank == 0:
    print(f"loss {loss:.6f}", flush=True)
