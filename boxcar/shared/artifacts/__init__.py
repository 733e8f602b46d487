"""What a cell leaves: which files count, of what kind they are, what to go on from."""
