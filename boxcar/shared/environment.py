"""What an agent gets of an environment: nothing of a person's shell reaches a training by it."""

from __future__ import annotations

from collections.abc import Mapping

# What a login shell on a fresh machine has too, and what makes a GPU visible.
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
_KEPT_PREFIXES = ("LC_", "CUDA_", "NVIDIA_")


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that an agent gets. No secret is in it: they have their file."""
    return {
        name: value
        for name, value in environ.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
