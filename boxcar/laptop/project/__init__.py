"""What a person wrote, resolved into a plan: job.yaml, profile, queues, grids."""
