"""What DistributedConfig asks for: DDP, FSDP2, accumulation, recomputation, compilation."""
