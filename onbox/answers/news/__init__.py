"""News that the laptop asks a box to send."""
