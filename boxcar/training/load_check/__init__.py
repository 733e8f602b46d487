"""The check that loads what a training left behind, in a child that may crash in its place."""
