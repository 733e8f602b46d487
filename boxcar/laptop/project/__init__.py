"""What a person wrote, resolved into a plan."""
