"""What laptop and login node both know of Slurm: how a job of ours is known, and its records."""
