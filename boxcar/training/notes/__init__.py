"""What a training writes down beside its artifacts."""
