"""`notify:` of job.yaml: where news of a run goes, and what that takes from the environment."""
