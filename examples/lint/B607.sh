#!/bin/bash
# B607: More nodes than the partition has.
#SBATCH --partition=ml
#SBATCH --nodes=5

srun ./solver
