"""Cells tried for two batches on this machine, and the record of it."""
