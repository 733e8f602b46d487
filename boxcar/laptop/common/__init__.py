"""What every room of the laptop uses."""
