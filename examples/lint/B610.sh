#!/bin/bash
# B610: The array is larger than the cluster takes.
#SBATCH --array=1-1000000

srun ./solver
