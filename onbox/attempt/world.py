"""How many ranks really formed, read from the environment of the ranks themselves.

A launcher may start fewer than it was asked for, and the training goes on with another batch size
and another result. A script need import nothing of ours to be seen here: every launcher tells its
ranks their number and how many they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onbox.machine import process

# Together they tell a world from the one around it, which a container's platform may have preset.
_NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT")
_OF_RANK = {"RANK", "LOCAL_RANK", "WORLD_SIZE"}
_PYTHON_OPTIONS = ("-u", "-m")


def formed(launcher: int, argv: Sequence[str], *, is_quick: bool = False) -> int | None:
    """How many ranks this launcher, started as `argv`, has formed; None while none is seen.

    The ranks nearest to the launcher count: a script may start others of its own. Where the
    launcher runs the script as a plain process, that is one. What cannot be read is no evidence.
    `is_quick`: by the kernel's own lists, which may miss one while another ends.
    """
    preset = _variables(launcher)
    generations = process.listed_generations if is_quick else process.generations
    for generation in generations(launcher):
        for pid in generation:
            found = _variables(pid)
            if found != preset and found.get("WORLD_SIZE", "").isdecimal():
                return int(found["WORLD_SIZE"])
        if any(_is_plain_script(pid, argv, preset) for pid in generation):
            return 1
    return None


def ranks(launcher: int) -> list[int]:
    """The living children of a launcher that it has told their rank. Helpers of a script's have
    another parent, and helpers of its own have no rank.
    """
    preset = _variables(launcher)
    children = next(process.generations(launcher), [])
    found = {pid: _variables(pid) for pid in children}
    return [pid for pid, own in found.items() if own != preset and own.keys() >= _OF_RANK]


def _is_plain_script(pid: int, argv: Sequence[str], preset: Mapping[str, str]) -> bool:
    """Its words first: until a rank has come to its exec it has its launcher's environment, and for
    an instant after that its own words and none.
    """
    if not _is_script(process.words(pid), argv):
        return False
    environment = process.environment(pid)
    return bool(environment) and _of(environment) == preset


def _variables(pid: int) -> dict[str, str]:
    return _of(process.environment(pid))


def _of(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in _NAMES if name in environment}


def _is_script(words: Sequence[str], launcher: Sequence[str]) -> bool:
    """Whether a process runs what stands at the end of the launcher's own command."""
    own = list(words[1:])
    if own == list(launcher[1:]):
        return False  # a child that has not come to its exec yet has all of the launcher's words
    while own and own[0] in _PYTHON_OPTIONS:
        own = own[1:]
    return bool(own) and len(own) < len(launcher) - 1 and list(launcher[-len(own) :]) == own
