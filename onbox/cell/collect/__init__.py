"""What is carried beside a result: found, moved to its place, and what must not leave the box."""
