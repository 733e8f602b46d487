"""Events to the addresses that the job names."""
