#!/bin/bash
#SBATCH --mem=1G
#SBATCH -o o.%j
#SBATCH -e e.%j

echo out; echo err >&2
