"""What was worked out before, in a file: read fast, and made into records where somebody asks."""
