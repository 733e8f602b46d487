"""Text and tables cut to the width of a terminal. Pure."""
