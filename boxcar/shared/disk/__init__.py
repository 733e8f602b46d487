"""How bytes reach a disk, and how we know that they did."""
