"""One queue to its end."""
