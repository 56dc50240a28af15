#!/bin/bash
#SBATCH --mem=1G
#SBATCH -o /dev/null

echo out; echo err >&2
