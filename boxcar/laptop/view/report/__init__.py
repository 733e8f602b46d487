"""A run as a table that people show: groups, differences, curves, and what may be believed."""
