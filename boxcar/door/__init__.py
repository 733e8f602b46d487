"""What stands behind `boxcar` beside the verbs: its help and its completion."""
