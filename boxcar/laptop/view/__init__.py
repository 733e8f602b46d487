"""What a run looks like: the board in a terminal, the same as a live page, the report."""
