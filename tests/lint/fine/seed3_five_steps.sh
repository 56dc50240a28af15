#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=4
#SBATCH --gres=gpu:4
#SBATCH --gpus-per-task=1
#SBATCH --time=01:00:00
#SBATCH --mem-per-cpu=1443
#SBATCH --partition=ml


step() { n=$1; shift; srun "$@" sh -c "echo S >>$W/log; ./probe step$n; sleep ${D-1.5}; echo E >>$W/log" & sleep 0.25; }
depth() { awk '/S/{d++; if(d>m)m=d} /E/{d--} END{print "max concurrent steps:", m+0}' $W/log; rm -f $W/log; }
for i in 1 2 3 4 5; do step $i --exclusive --gres=gpu:1 --ntasks=1 --cpus-per-task=4 --gpus-per-task=1 --mem-per-cpu=1443; done
wait
depth
