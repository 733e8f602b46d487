"""Queues of a cluster, whose agents Slurm starts."""
