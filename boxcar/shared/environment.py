"""What is started in: nothing of a person's shell reaches a training by it, and a profile's hook
has run before.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

# Where the file with the secrets is, for an agent; no training hears of it.
CREDENTIALS = "BOXCAR_CREDENTIALS"
# In each pod of a queue whose cells take several: how many these are, and their names' domain.
PODS, PODS_DOMAIN = "BOXCAR_PODS", "BOXCAR_PODS_DOMAIN"
# And its own name: that of its host is another one there.
POD = "BOXCAR_POD"
# In those without an agent: run_queue.sh starts what follows the agent of that queue.
FOLLOWS = "BOXCAR_FOLLOWS"
# Kubernetes sets it in the pods of an Indexed Job.
POD_INDEX = "JOB_COMPLETION_INDEX"
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


def own_name(environ: Mapping[str, str]) -> str:
    """By which other nodes find this one."""
    domain = environ.get(PODS_DOMAIN, "")
    return f"{os.uname().nodename}.{domain}" if domain else os.uname().nodename


def after_hook(hook: str) -> list[str]:
    """The words before a program and its own, so that it runs after the hook."""
    return ["bash", "-c", _SCRIPT.format(hook=hook), "boxcar"]
