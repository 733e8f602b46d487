"""Boxcar: run a queue of training cells on rented boxes and lose none of their results."""

__version__ = "0.2.0"
