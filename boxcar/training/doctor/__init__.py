"""Is this machine fit for several ranks, and why did a run hang? Its door is __main__.py."""
