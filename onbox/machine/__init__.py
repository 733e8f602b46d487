"""What this box is and has."""
