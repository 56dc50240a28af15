#!/bin/bash
# B305: More threads than CPUs.
#SBATCH --partition=ml
#SBATCH --cpus-per-task=4

export OMP_NUM_THREADS=16
srun ./solver
