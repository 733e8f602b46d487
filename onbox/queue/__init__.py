"""Which line of a queue is next: what it says, whose its cells are, and what waits for what."""
