"""The receiver behind `listen`."""
