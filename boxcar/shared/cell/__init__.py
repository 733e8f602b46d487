"""What a cell is: the line that says it, its name, and what is run for it; for both sides."""
