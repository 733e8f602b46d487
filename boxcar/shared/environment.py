"""What is started in: nothing of a person's shell reaches a training by it, and a profile's hook
has run before.
"""

from __future__ import annotations

from collections.abc import Mapping

# Where the file with the secrets is, for an agent; no training hears of it.
CREDENTIALS = "BOXCAR_CREDENTIALS"
# What a login shell on a fresh machine has too, and what makes a GPU visible.
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
_KEPT_PREFIXES = ("LC_", "CUDA_", "NVIDIA_")
# The hook's own words and arguments stay its own.
_SCRIPT = """\
arguments=("$@")
set --
{{
:
{hook}
}} >&2 </dev/null
exec "${{arguments[@]}}"
"""


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that an agent gets. No secret is in it: they have their file."""
    return {
        name: value
        for name, value in environ.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }


def after_hook(hook: str) -> list[str]:
    """The words before a program and its own, so that it runs after the hook."""
    return ["bash", "-c", _SCRIPT.format(hook=hook), "boxcar"]
