"""What runs on your machine: job and profile to plan, release, boxes, results and teardown."""
