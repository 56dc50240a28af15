#!/bin/bash
# B302: Fewer tasks than nodes.
#SBATCH --ntasks=2
#SBATCH --nodes=4

srun ./solver
