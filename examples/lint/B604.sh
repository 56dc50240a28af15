#!/bin/bash
# B604: The time limit is above that of the partition.
#SBATCH --partition=short
#SBATCH --time=1-0

srun ./solver
