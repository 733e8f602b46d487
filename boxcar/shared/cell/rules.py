"""What `cells:` of job.yaml says of some cells: by a name, or by a pattern with `*` and `?`.

The plan keeps the rules and not what they come to, so that lines which are appended get them too.
Key by key a line's own word comes first, then the exact name, then a pattern, then the job. `env`
is merged by variable.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields

from boxcar.shared.cell.spelling import nfc
from boxcar.shared.files.plan import Rule

# The keys of a rule, but for `env`.
KEYS = tuple(f.name for f in fields(Rule) if f.name not in ("cells", "env", "extra"))


def is_pattern(text: str) -> bool:
    return "*" in text or "?" in text


def fits(pattern: str, cell: str) -> bool:
    """Whether a name or pattern speaks of the cell; case counts, and `[` is a letter."""
    return bool(_regex(pattern).fullmatch(nfc(cell)))


def of_cell(rules: Iterable[Rule], cell: str) -> list[Rule]:
    """The rules that speak of the cell, the one that counts most first."""
    found = (rule for rule in rules if fits(rule.cells, cell))
    return sorted(found, key=lambda rule: is_pattern(rule.cells))


def quarrels(rules: Iterable[Rule], cell: str) -> Iterator[tuple[str, Rule, Rule]]:
    """Two patterns that give the cell different values for one key: the key, and both."""
    patterns = [rule for rule in of_cell(rules, cell) if is_pattern(rule.cells)]
    for at, one in enumerate(patterns):
        for other in patterns[at + 1 :]:
            for key in KEYS:
                mine, theirs = getattr(one, key), getattr(other, key)
                if mine is not None and theirs is not None and mine != theirs:
                    yield key, one, other
            for name in one.env.keys() & other.env.keys():
                if one.env[name] != other.env[name]:
                    yield f"env.{name}", one, other


@functools.lru_cache(maxsize=1024)
def _regex(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"([*?])", nfc(pattern))
    spelled = {"*": ".*", "?": "."}
    return re.compile("".join(spelled.get(part, re.escape(part)) for part in parts), re.DOTALL)
