"""What the end of an attempt means, and what follows: evidence in, a verdict out."""
