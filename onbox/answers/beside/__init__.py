"""Who else is on a box: its other runs, and programs that are no run's."""
