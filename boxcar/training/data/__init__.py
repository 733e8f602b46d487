"""Which samples a rank sees, and how their batches travel. loader.py is its door."""
