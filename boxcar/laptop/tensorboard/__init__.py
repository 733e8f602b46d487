"""TensorBoard where a run's event files are: on this machine, or on a box behind ssh."""
