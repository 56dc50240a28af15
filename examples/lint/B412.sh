#!/bin/bash
# B412: berth bind refuses to run.
#SBATCH --nodes=1
#SBATCH --ntasks=4
#SBATCH --gpus=4

mpirun -np 4 berth bind --gpus-per-rank 2 ./solver
