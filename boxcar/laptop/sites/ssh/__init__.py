"""Boxes that are rented, and reached over ssh."""
