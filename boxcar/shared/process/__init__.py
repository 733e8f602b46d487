"""Processes that either side starts, and how they end."""
