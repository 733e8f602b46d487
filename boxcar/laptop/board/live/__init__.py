"""The board on a terminal that a person sits at: the tty, its keys, and who looks meanwhile."""
