"""A program after a profile's hook, as the wrappers run one. See templates/profile_hook.sh.j2."""

from __future__ import annotations

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


def after_hook(hook: str) -> list[str]:
    """The words before a program and its own, so that it runs after the hook."""
    return ["bash", "-c", _SCRIPT.format(hook=hook), "boxcar"]
