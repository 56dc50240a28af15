# B209: The script has no interpreter line.
srun ./solver
