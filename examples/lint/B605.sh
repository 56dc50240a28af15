#!/bin/bash
# B605: No time limit.
#SBATCH --ntasks=1

srun ./solver
