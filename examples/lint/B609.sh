#!/bin/bash
# B609: The partition is not up.
#SBATCH --partition=closed

srun ./solver
