"""Whether a box is fit for the run."""
