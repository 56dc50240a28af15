#!/bin/bash
# B608: More CPUs on a node than any node has.
#SBATCH --cpus-per-task=64

srun ./solver
