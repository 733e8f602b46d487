"""Folders between the laptop and a box, checked on arrival."""
