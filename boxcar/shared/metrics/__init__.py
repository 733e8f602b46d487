"""The numbers that job.yaml names, out of a log, a CSV or a JSON file, in a child with limits."""
