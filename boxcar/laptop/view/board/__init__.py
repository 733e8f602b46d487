"""The board of a run: what `watch` and `status` draw. Pure up to `screen`, which owns the tty."""
