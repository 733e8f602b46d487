"""The boxes of a run: what they are asked and what they reported."""
