"""Which lines of a log may tell of its end: none that was survived, guessed or of others. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from boxcar.shared.triage.log_lines import Line
from boxcar.shared.triage.tracebacks import PROGRESS_AFTER

# Some libraries list all that may have happened, and all that may help.
_GUESSES = re.compile(
    r"(?i)(?:potential|possible|likely|common) (?:root )?(?:causes?|reasons?)\b|\bsolutions?: "
    r"|\bsuggestions?: "
)
_SRUN_ENDS = re.compile(r"srun: error: \S+ tasks? \S+ Exited with exit code [1-9]")
_STEP_ENDED = re.compile(
    r"\*\*\* STEP \S+ ON \S+ CANCELLED AT \S+(?: DUE to SIGNAL [^*\n]+)? \*\*\*"
    r"|: (?:Terminated|Killed)$"
)
# Of a frame's code: what it would say, or what it says in another case.
_RAISES = re.compile(r"(?:[│|❱> \d]*[│|] )?\s*raise \w")
_MOST_JUDGED = 200_000  # characters


def without_guesses(line: Line) -> Line:
    found = _GUESSES.search(line.text)
    return replace(line, text=line.text[: found.start()]) if found else line


def without_ended(lines: Sequence[Line], pids: set[str]) -> list[Line]:
    """Without what is said of the ranks that torchrun or srun ended, as another had failed."""
    told_of = re.compile(r"(?:\bPID|\(pid:) (\d+)")
    has_srun_ended = any(_SRUN_ENDS.search(line.text) for line in lines)
    return [
        line
        for line in lines
        if not (pids and (found := told_of.search(line.text)) and found[1] in pids)
        and not (has_srun_ended and _STEP_ENDED.search(line.text))
    ]


def without_raises(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if not _RAISES.match(line.text)]


def not_survived(lines: Sequence[Line]) -> list[Line]:
    """Those after which their rank did not go on."""
    left = Counter(line.rank for line in lines if line.is_progress)
    kept = []
    for line in lines:
        left[line.rank] -= line.is_progress
        if left[line.rank] < PROGRESS_AFTER:
            kept.append(line)
    return kept


def worth_a_look(lines: Sequence[Line]) -> list[Line]:
    """The last ones that are no progress; of those that say the same but for numbers the last."""
    kept: dict[str, Line] = {}
    left = _MOST_JUDGED
    for line in reversed(lines):
        shape = re.sub(r"\d+", "0", line.text[:300])
        if line.text.strip() and shape not in kept:
            kept[shape] = line
            left -= len(line.text)
            if left < 0:
                break
    return sorted(kept.values(), key=lambda line: line.number)
