"""Boxes that are folders on this machine."""
