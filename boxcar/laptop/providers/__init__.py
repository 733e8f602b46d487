"""Boxes by the provider's word: offers, create, list, end, balance. One file for each provider."""
