"""What a person is told of a run while nobody looks: which events, and in what words. Pure."""
