"""Every file that both sides read or write: one module for each format."""
