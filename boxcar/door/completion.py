"""What may stand next on a command line: verbs, flags, and values that are in use here.

Typed with each Tab, so it reads two small files and imports no model of them. What cannot be read
offers nothing: a mistake in job.yaml is told by the verbs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from boxcar.door.verb_table import PROFILE, VERBS, Flag
from boxcar.laptop.common import home
from boxcar.shared.files import queue_line
from boxcar.shared.record import dataclass

CORE_FLAGS = ("--help", "--list", "--version", "--profile")


@dataclass(frozen=True)
class Line:
    """What was typed before the word that is completed: the verb, the word before, the job file."""

    verb: str | None
    before: str
    job: Path


def candidates(words: Sequence[str], folder: Path) -> list[str]:
    """`words` are those behind the program, the last one the one that is completed, maybe empty.

    Nothing where the shell's own files are meant.
    """
    *typed, current = _joined(words) or [""]
    line = _line(typed, folder)
    flags = VERBS[line.verb].spelled if line.verb else {}
    if current.startswith("--") and "=" in current:
        flag, _, start = current.partition("=")
        values = _values(line, flags.get(flag))
        return [f"{flag}={value}" for value in values if value.startswith(start)]
    return [one for one in _next(line, flags, current) if one.startswith(current)]


def _next(line: Line, flags: Mapping[str, Flag], current: str) -> list[str]:
    before = flags.get(line.before)
    if before and before.takes_value:
        return _values(line, before)
    if line.verb is None:
        is_profile = line.before in PROFILE.spellings
        offered = _names(line, "profile") if is_profile else sorted(VERBS)
        return list(CORE_FLAGS) if current.startswith("-") else offered
    if line.verb == "logs" and not current.startswith("-"):
        return _names(line, "cell")
    is_file = line.verb == "grid" and not current.startswith("-")
    return [] if is_file else sorted(flag for flag in flags if flag.startswith("--"))


def _values(line: Line, flag: Flag | None) -> list[str]:
    if flag is None:
        return []
    names = _names(line, _KINDS.get(flag.name, flag.name))
    return [f"{one}=" for one in names] if flag.name in ("speed", "minutes") else names


def _names(line: Line, kind: str) -> list[str]:
    try:
        return sorted(set(_READERS[kind](line.job))) if kind in _READERS else []
    except (OSError, ValueError, TypeError, AttributeError):
        return []


def _joined(words: Sequence[str]) -> list[str]:
    """bash takes `--profile=x` for three words."""
    joined: list[str] = []
    for word in words:
        if joined and (word == "=" or joined[-1].endswith("=")) and joined[-1].startswith("--"):
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def _line(typed: Sequence[str], folder: Path) -> Line:
    named = [
        word
        for at, word in enumerate(typed)
        if word in VERBS and typed[at - 1] not in PROFILE.spellings
    ]
    jobs = [word for before, word in itertools.pairwise(typed) if before == "--job"]
    jobs += [word.partition("=")[2] for word in typed if word.startswith("--job=")]
    job = folder / Path(jobs[-1] if jobs else "job.yaml").expanduser()
    return Line(named[0] if named else None, typed[-1] if typed else "", job)


# --- what is in use here


def _queues(job: Path) -> Mapping[str, Any]:
    """The job's queue files and the box of each, as they are written."""
    import yaml  # late: most words are completed without it

    try:
        queues = yaml.safe_load(job.read_text("utf-8"))["queues"]
    except (yaml.YAMLError, KeyError) as error:
        raise ValueError(str(error)) from error
    return dict(queues)


def _profiles(job: Path) -> Iterator[str]:
    for folder in (home.assets_root() / "profiles", job.parent / "profiles"):
        yield from (path.stem for path in folder.glob("*.yaml") if not path.stem.startswith("_"))


def _cells(job: Path) -> Iterator[str]:
    for file in _queues(job):
        yield from (
            line.name for line in queue_line.parse_queue((job.parent / file).read_bytes()).cells
        )


_READERS: dict[str, Callable[[Path], Any]] = {
    "profile": _profiles,
    "cell": _cells,
    "queue": lambda job: [Path(file).stem for file in _queues(job)],
    "box": lambda job: [str(box) for box in _queues(job).values()],
    "run": lambda job: [path.name for path in (job.parent / "results").iterdir()],
    "beside": lambda job: [one.run for one in home.known_runs()],
    "lang": lambda job: ("en", "zh"),
    "to": lambda job: ("html", "png", "md", "latex", "csv", "json"),
}
# Flags whose values are of another one's kind.
_KINDS = {
    "abandon": "cell",
    "baseline": "cell",
    "gone": "box",
    "minutes": "cell",
    "speed": "box",
    "through": "box",
}

# The scripts that make a shell complete: each asks `boxcar --complete -- WORDS`.
SCRIPTS = {
    "bash": """\
# Completion of boxcar in bash; in ~/.bashrc: source <(boxcar --print-completion-script=bash)
_boxcar() {
    local IFS=$'\\n'
    COMPREPLY=($(boxcar --complete -- "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null))
    # bash replaces only what stands behind its own last break, = or :.
    if [[ "$COMP_WORDBREAKS" == *=* && "${COMP_WORDS[COMP_CWORD-1]}" == "=" ]] ||
       [[ "${COMP_WORDS[COMP_CWORD]}" == "=" ]]; then
        COMPREPLY=("${COMPREPLY[@]#--*=}")
    fi
    [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *= ]] && compopt -o nospace
}
complete -o default -F _boxcar boxcar
""",
    "zsh": """\
# Completion of boxcar in zsh; in ~/.zshrc: source <(boxcar --print-completion-script=zsh)
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
_boxcar() {
    local -a found
    found=("${(@f)$(boxcar --complete -- "${(@)words[1,CURRENT]}" 2>/dev/null)}")
    found=(${found:#})
    if (( ! $#found )); then
        _files
    elif [[ $#found -eq 1 && "${found[1]}" == *= ]]; then
        compadd -S '' -a found
    else
        compadd -a found
    fi
}
compdef _boxcar boxcar
""",
    "fish": """\
# Completion of boxcar in fish; once:
#   boxcar --print-completion-script=fish > ~/.config/fish/completions/boxcar.fish
function __boxcar_complete
    set -l current (commandline -ct)[1]
    set -l found (boxcar --complete -- (commandline -opc) "$current" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete --command boxcar --no-files --arguments '(__boxcar_complete)'
""",
}
