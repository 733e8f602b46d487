"""A journal on the laptop: whole, followed to what it comes to, and what looks remember of it."""
