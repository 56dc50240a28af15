#!/bin/bash
# B701: The directory of the output does not exist.
#SBATCH --output=no-such-directory/%j.out

srun ./solver
