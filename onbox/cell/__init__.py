"""One cell: staged, attempted, mirrored, settled."""
