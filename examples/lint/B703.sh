#!/bin/bash
# B703: %t in the output of a batch script.
#SBATCH --output=rank%t.out

srun ./solver
