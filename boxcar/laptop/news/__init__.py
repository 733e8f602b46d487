"""News that this machine sends while somebody looks, and what a teardown would leave unsent."""
