"""The local queue files: what the tier lacks, what a cell costs, how they are rewritten."""
