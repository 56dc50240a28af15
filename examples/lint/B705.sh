#!/bin/bash
# B705: The working directory does not exist.
#SBATCH --chdir=/no/such/place

srun ./solver
