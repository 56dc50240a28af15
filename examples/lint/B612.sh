#!/bin/bash
# B612: --time=24:00 is 24 minutes.
#SBATCH --time=24:00

srun ./solver
