"""Of a cell that its box called failed, or that has no result of its queue's own: whether `verify`
has proven what is published. The agents read the same document, and train such a cell no more.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from boxcar.laptop.run.open_run import OpenRun
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.errors import DamagedError, some
from boxcar.shared.files import receipt
from boxcar.shared.files.receipt import Accepted
from boxcar.shared.paths import DurablePaths
from boxcar.shared.record import replace
from boxcar.shared.state import CellRecord, Failed, Queued, Verified

_NAMED = 3


def found(tier: DurablePaths, cell: str, record: CellRecord) -> Accepted | None:
    """What was accepted of the cell, where its record leaves a word to it. Raises DamagedError,
    OSError.
    """
    return receipt.accepted_result(tier, cell) if is_asked(record) else None


def asks_of(tier: DurablePaths) -> Callable[[str], bool]:
    """Whether something may be accepted of a cell, by one look into the folder: a run has a hundred
    thousand of which nothing is.
    """
    try:
        there = {name.removesuffix(".json") for name in os.listdir(tier.accepted_folder)}  # noqa: PTH208
    except FileNotFoundError:
        there = set()
    except OSError:
        return lambda cell: True  # whoever asks of each says what is wrong
    return there.__contains__


_A_REASON = re.compile(rb'"because":\s*"')


def given_up(run: OpenRun) -> dict[str, str]:
    """Why a person has given up which cells, by the last receipt; {} where none can be read."""
    path = run.results.receipt
    try:
        # Of most runs nothing was: each look reads it, and a receipt may have thousands of cells.
        if not _A_REASON.search(path.read_bytes()):
            return {}
        verdicts = receipt.read_run(path).cells
    except (OSError, DamagedError):
        return {}
    return {one.cell: one.because for one in verdicts if one.because is not None}


def is_asked(record: CellRecord) -> bool:
    now = record.state
    return isinstance(now, (Failed, Queued)) or (isinstance(now, Verified) and bool(now.by))


def merged(record: CellRecord, made: Accepted) -> CellRecord:
    """The record as the next agent will have it."""
    if isinstance(record.state, Verified):
        return record
    attempt = max(1, record.attempts)
    state = Verified(attempt, made.at, made.manifest_sha256, by=receipt.LAPTOP)
    return replace(record, state=state)


def sentence(made: Accepted) -> Sentence:
    """Such as `accepted by verify on 2026-11-22: model.pkl unpickled`."""
    at = made.at[:10]
    if made.is_lent:
        return Sentence("story.lent_here", at=at)
    if made.unpickled:
        return Sentence("story.accepted_with", at=at, files=some(made.unpickled, _NAMED))
    return Sentence("story.accepted_by", at=at)
