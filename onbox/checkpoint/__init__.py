"""A cell's live checkpoint: mirrored while it runs, put back, and an older one that is tried."""
