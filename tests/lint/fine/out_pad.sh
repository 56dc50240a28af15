#!/bin/bash
#SBATCH --mem=1G
#SBATCH -o p_%8j_%3t_%04n.out

echo out; echo err >&2
