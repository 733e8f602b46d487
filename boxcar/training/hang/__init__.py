"""Why ranks wait for each other: what each says of itself, and the report. stall.py is its door."""
