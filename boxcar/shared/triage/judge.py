"""The verdict on a failure: evidence is looked at from the surest down. Pure.

In order: what the platform and the driver say, the memory counters, the GPUs, the error file of the
first rank that failed, the last traceback of that rank, the rest of the log, the exit code. What is
written in a warning that the script survived never outranks the traceback that ended it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from boxcar.shared.sentence import Sentence, _
from boxcar.shared.triage import exit_signals, matching
from boxcar.shared.triage.evidence import Cause, Course, Evidence, Quote
from boxcar.shared.triage.log_lines import Line, lines_of
from boxcar.shared.triage.matching import (
    LONGEST_WORDS,
    Hit,
    hit_of_chain,
    hit_of_lines,
    hit_of_words,
)
from boxcar.shared.triage.signature import Signature, Where
from boxcar.shared.triage.signatures import platform
from boxcar.shared.triage.signatures.all_rows import BY_ID, SIGNATURES
from boxcar.shared.triage.tracebacks import (
    Raised,
    bare_errors,
    headless,
    not_survived,
    tracebacks,
    without_ended,
    without_guesses,
    without_raises,
    worth_a_look,
)

_RETRY_AFTER = re.compile(
    r"(?i)retry[- ]after['\"]?[:= ]+['\"]?(\d{1,6})"
    r"|(?:retry|try again) (?:in|after) (\d{1,6}) ?s(?:econds?)?\b"
)
_KILLED = re.compile(r"\bKilled\b|SIGKILL|signal 9\b")
_MENTIONED = re.compile(
    r"(?<![A-Za-z0-9_.])(?:[a-z_][a-zA-Z0-9_]*\.)*[A-Z][a-zA-Z0-9_]*(?:Error|Exception)\b(?=:|\W*$)"
)
# Of a traceback whose end is not in the log.
_FRAME = re.compile(r'\s*File "[^"]+", line \d+, in\b')
_LONGEST_WAIT_S = 6 * 3600.0


def judge(evidence: Evidence) -> Cause:
    if evidence.own:
        return evidence.own
    lines = lines_of(evidence.log, evidence.log_begins_at_line)
    told = _Told(lines, evidence)
    looks: tuple[Callable[[], Hit | None], ...] = (
        told.by_platform,
        told.by_memory,
        told.by_gpus,
        told.by_error_file,
        told.by_traceback,
        told.by_lines,
        told.by_kill,
        told.by_signal,
        told.by_symptom,
        told.by_mere_signal,
        told.by_family,
        told.by_warning,
        told.by_mention,
        told.by_broad_words,
    )
    for look in looks:
        if hit := look():
            return _cause(hit, evidence)
    return told.unknown()


class _Told:
    """What one log tells; each look gives the row that explains the end, or None."""

    def __init__(self, lines: Sequence[Line], evidence: Evidence) -> None:
        self._evidence = evidence
        told = without_ended(lines, exit_signals.ended_by_it(evidence.log))
        told = without_raises(told)
        self._lines = worth_a_look(told)
        self._last = worth_a_look(not_survived(told))
        self._strong = [line for line in map(without_guesses, self._last) if not line.is_warning]
        self._bare = bare_errors(self._last)
        self._found = tracebacks(lines) or headless(lines, self._bare)
        rank = exit_signals.root_cause(evidence.log).get("rank", "")
        self._root_rank = int(rank) if rank.isdecimal() else None

    def by_platform(self) -> Hit | None:
        return hit_of_lines([row for row in SIGNATURES if row.where is Where.ANYWHERE], self._lines)

    def by_memory(self) -> Hit | None:
        """The counter is the container's: somebody else in it may have been killed."""
        was_killed = self._evidence.rcs & {-9, 137} or _KILLED.search(self._evidence.log)
        return Hit(BY_ID["U9"], ()) if self._evidence.oom_kills and was_killed else None

    def by_gpus(self) -> Hit | None:
        quotes = tuple(Quote(0, text) for text in self._evidence.gpu_problems)
        return Hit(BY_ID["NVML"], quotes) if quotes else None

    def by_error_file(self) -> Hit | None:
        file = self._evidence.error_file
        found = tracebacks(lines_of(file)) if file else []
        hits = [hit_of_chain(one) for one in found[-1:]]
        return next((hit for hit in hits if hit and not hit.row.is_symptom), None)

    def by_traceback(self) -> Hit | None:
        """The last one of the rank that failed first, if it says why."""
        ended_it = [one for one in self._found if not one.is_survived]
        hits = [(one, hit_of_chain(one)) for one in ended_it]
        why = [(one, hit) for one, hit in hits if not (hit and hit.row.is_symptom)]
        if self._root_rank is not None:
            why = [pair for pair in why if pair[0].rank == self._root_rank] or why
        if not why:
            return None
        first = why[0][0].rank if any(one.rank is not None for one, _ in why) else None
        hit = [hit for one, hit in why if one.rank == first or first is None][-1]
        return self._explained(hit)

    def _explained(self, hit: Hit | None) -> Hit | None:
        """By a line that says why what the exception tells could happen; it may be a warning."""
        rows = [BY_ID[id] for id in hit.row.explained_by] if hit else []
        return hit_of_lines(rows, self._lines) or hit

    def by_lines(self) -> Hit | None:
        """What a line says that is no warning, or an exception without its traceback."""
        rows = [row for row in _IN_LINES if not (row.is_symptom or row.is_general)]
        return self._explained(hit_of_lines(rows, self._strong) or self._by_bare_error())

    def _by_bare_error(self) -> Hit | None:
        hits = [hit for one in self._bare if (hit := hit_of_words(one)) and not hit.row.is_symptom]
        return hits[-1] if hits else None

    def by_kill(self) -> Hit | None:
        """What a launcher or a shell says of a signal."""
        rows = [row for row in platform.SIGNATURES if row.is_general and not row.is_symptom]
        return hit_of_lines(rows, self._strong)

    def by_signal(self) -> Hit | None:
        hit = self.by_mere_signal()
        return hit if hit and not (hit.row.is_symptom and hit.row.is_general) else None

    def by_mere_signal(self) -> Hit | None:
        """An abort says nothing of why: a library's own last words do."""
        name = exit_signals.signal_of_exit(self._evidence.rcs)
        return Hit(BY_ID[name], ()) if name else None

    def by_symptom(self) -> Hit | None:
        """Nobody says why: then that a rank failed is all that is known."""
        hits = [hit for one in self._found if not one.is_survived and (hit := hit_of_chain(one))]
        named = [hit for hit in hits if not hit.row.is_general]
        rows = [row for row in _IN_LINES if row.is_symptom and not row.is_general]
        return (named[0] if named else None) or hit_of_lines(rows, self._strong)

    def by_family(self) -> Hit | None:
        rows = [row for row in _IN_LINES if row.is_general and not row.is_symptom]
        hits = [hit for one in self._found if not one.is_survived and (hit := hit_of_chain(one))]
        found = hit_of_lines(rows, self._strong) or (hits[-1] if hits else None)
        return found or hit_of_lines([row for row in _IN_LINES if row.is_symptom], self._strong)

    def by_warning(self) -> Hit | None:
        survived = [hit for one in self._found if one.is_survived and (hit := hit_of_chain(one))]
        if survived:
            return survived[-1]
        if any(not one.is_survived for one in self._found) or self._bare:
            return None
        said = hit_of_lines([row for row in SIGNATURES if not row.is_general], self._last)
        return said or hit_of_lines([BY_ID["NET"], BY_ID["RESET"]], self._last)

    def by_mention(self) -> Hit | None:
        """An exception's name within a line, as people and loggers repeat it."""
        said = [(line, found) for line in self._lines if (found := _MENTIONED.search(line.text))]
        raised = [Raised(line.number, line.text[found.start() :]) for line, found in said]
        return next((hit for one in reversed(raised) if (hit := hit_of_words(one))), None)

    def by_broad_words(self) -> Hit | None:
        """Not where an exception is known: it is the script's own."""
        if self._bare or any(not one.is_survived for one in self._found):
            return None
        found = matching.subject_of_words(self._strong)
        if not found:
            return None
        id, line = found
        return Hit(BY_ID[id], (Quote(line.number, line.text.strip()[:LONGEST_WORDS]),))

    def unknown(self) -> Cause:
        """An exception that no row knows is the script's own; so are the last words of one that
        ended itself. Without either nobody knows.
        """
        ended_it = [one for one in self._found if not one.is_survived]
        raised = ended_it[-1].last if ended_it else self._bare[-1] if self._bare else None
        if raised:
            quote = Quote(raised.number, raised.first[:LONGEST_WORDS])
            return _cause(Hit(BY_ID["PY"], (quote,)), self._evidence)
        said = [line for line in self._lines if line.text.strip() and not line.is_progress]
        quotes = tuple(Quote(line.number, line.text.strip()[:LONGEST_WORDS]) for line in said[-1:])
        if quotes and any(_FRAME.match(line.text) for line in self._lines):
            return _cause(Hit(BY_ID["PY"], quotes), self._evidence)
        if quotes and any(rc > 0 for rc in self._evidence.rcs):
            return _cause(Hit(BY_ID["SAID"], quotes), self._evidence)
        course = Course.FIX_CODE if self._evidence.rcs else Course.ASK
        return Cause("", course, quotes[0].text if quotes else "", quotes, is_known=False)


_IN_LINES = [row for row in SIGNATURES if row.where is not Where.ERROR]


def _cause(hit: Hit, evidence: Evidence) -> Cause:
    row = hit.row
    reason = words = Sentence(row.words)
    if hit.quotes:
        reason = _("{words}: {text}", words=words, text=hit.quotes[0].text)
    return Cause(row.id, row.course, reason, hit.quotes, _waits(row, evidence.log))


def _waits(row: Signature, log: str) -> tuple[float, ...]:
    """A server that says when it may be asked again is not asked before."""
    if row.course is not Course.WAIT_NETWORK:
        return row.waits_s
    asked = [float(a or b) for a, b in _RETRY_AFTER.findall(log[-200_000:])]
    at_least_s = min(asked[-1], _LONGEST_WAIT_S) if asked else 0.0
    return tuple(max(wait_s, at_least_s) for wait_s in row.waits_s)
