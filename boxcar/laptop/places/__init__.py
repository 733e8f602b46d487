"""Where a run's boxes are: this machine, machines over ssh, a Slurm cluster; one table chooses."""
