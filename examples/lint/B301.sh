#!/bin/bash
# B301: --ntasks differs from nodes × ntasks-per-node.
#SBATCH --ntasks=4
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=4

srun ./solver
