"""The full state on the disk and back. checkpointer.py is its door."""
