"""What is known of a run at one moment."""
