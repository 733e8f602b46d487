"""What is asked of Slurm on a login node: single short calls that leave nothing running."""
