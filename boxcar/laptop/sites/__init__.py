"""Where boxes are: each kind of place in a folder of its own, and one table that chooses."""
