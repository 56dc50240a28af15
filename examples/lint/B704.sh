#!/bin/bash
# B704: %a without an array.
#SBATCH --output=run_%A_%a.out

srun ./solver
