"""Sentences by their id, in each language, and how one is said."""
