"""What a cell has left: found, copied with its proof, carried beside, and whether it stands."""
