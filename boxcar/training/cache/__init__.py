"""Latents that are encoded once and mapped by all. latent_cache.py is its door."""
