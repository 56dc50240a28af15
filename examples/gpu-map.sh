#!/bin/bash
# Which rank runs where, and which GPU and CPUs does it see? Four ranks on two nodes, a GPU for each; then
# two steps side by side on one node, each with half of what the job has there.
#SBATCH --job-name=gpu-map
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=2
#SBATCH --gpus-per-task=1
#SBATCH --time=10

# On a pretended node CPUs are not really bound; berth says in BERTH_TASK_CPUS which they would be.
show='printf "%-6s rank %s  %-8s GPU %-4s CPUs %s\n" "step $SLURM_STEP_ID" "$SLURM_PROCID" "$SLURMD_NODENAME" \
  "${CUDA_VISIBLE_DEVICES:-none}" "${BERTH_TASK_CPUS:-$(taskset -p $$ | sed "s/.*: /0x/")}"'

echo "job $SLURM_JOB_ID has $SLURM_NTASKS tasks on $SLURM_JOB_NODELIST"
srun bash -c "$show" | sort

echo "two steps at once on $SLURMD_NODENAME:"
for i in 1 2; do
  srun --exact -N1 -n1 -w "$SLURMD_NODENAME" bash -c "$show" &
done
wait
