#!/bin/bash
# B602: No node has that feature.
#SBATCH --constraint=nvlnk

srun ./solver
