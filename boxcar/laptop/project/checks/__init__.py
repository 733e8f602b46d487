"""What of a job is wrong or worth a look, beyond each key by itself: links, open TODOs, trackers."""
