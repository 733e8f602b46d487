"""How long an attempt may take, as people write it: `90s`, `30m`, `2h`, `1h30m`, `2d`."""

from __future__ import annotations

import re

from boxcar.shared.sentence import _

# How long a script that is told to leave gets to save: a large checkpoint takes its time.


GRACE_S = 60.0


_UNITS_S = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_WHOLE = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?", re.ASCII)


def parse_duration(text: str) -> int:
    """In seconds. Raises ValueError."""
    match = _WHOLE.fullmatch(text)
    counts = match.groups() if match else ()
    seconds = sum(
        int(count) * unit
        for count, unit in zip(counts, _UNITS_S.values(), strict=False)
        if count is not None
    )
    if seconds < 1:
        raise ValueError(
            _("expected a time such as 90s, 30m, 2h or 1h30m, found {text!r}", text=text)
        )
    return seconds


def spell_duration(time_s: int) -> str:
    """The shortest text that `parse` reads as that."""
    parts = []
    for name, unit in _UNITS_S.items():
        count, time_s = divmod(time_s, unit)
        parts += [f"{count}{name}"] if count else []
    return "".join(parts)
