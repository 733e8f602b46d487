"""Measurements, side by side in one run; only their ratios last. `make bench` prints them.

Nothing here asserts: a shared machine with two cores makes any single number a guess.
"""
