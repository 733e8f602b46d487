"""Whether a run may be torn down, and what ends it."""
