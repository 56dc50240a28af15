#!/bin/bash
# B706: The output is on the node's own disk.
#SBATCH --output=/tmp/run.out

srun ./solver
