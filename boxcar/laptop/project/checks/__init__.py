"""What of a job is wrong or worth a look, beyond each key: links, open TODOs, trackers."""
