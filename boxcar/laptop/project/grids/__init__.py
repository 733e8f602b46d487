"""Grids: the lines of all combinations of some values, which of them are new, and where they go."""
