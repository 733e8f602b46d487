"""What the laptop asks of this box: one module for each question."""
