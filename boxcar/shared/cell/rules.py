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
from itertools import combinations

from boxcar.shared.cell.cell_name import nfc
from boxcar.shared.files.plan import Rule

# The keys of a rule, but for `env`.
KEYS = tuple(f.name for f in fields(Rule) if f.name not in ("cells", "env", "extra"))
# Which of them a person writes otherwise.
_IN_JOB = {"nproc": "nproc_per_node", "time_s": "time"}


def is_pattern(text: str) -> bool:
    return "*" in text or "?" in text


def rule_fits(pattern: str, cell: str) -> bool:
    """Whether a name or pattern speaks of the cell; case counts, and `[` is a letter."""
    return bool(_regex(pattern).fullmatch(nfc(cell)))


def rules_of_cell(rules: Iterable[Rule], cell: str) -> list[Rule]:
    """The rules that speak of the cell, the one that counts most first."""
    found = [rule for rule in rules if rule_fits(rule.cells, cell)]
    return sorted(found, key=lambda rule: is_pattern(rule.cells)) if len(found) > 1 else found


def quarrels_of_rules(rules: Iterable[Rule], cell: str) -> Iterator[tuple[str, Rule, Rule]]:
    """Two patterns that give the cell different values for one key: the key, and both.

    Not where its exact name gives that key.
    """
    found = [(_said_by(rule), rule) for rule in rules_of_cell(rules, cell)]
    settled = {key for said, rule in found if not is_pattern(rule.cells) for key in said}
    patterns = [(said, rule) for said, rule in found if is_pattern(rule.cells)]
    for (mine, one), (theirs, other) in combinations(patterns, 2):
        for key in mine.keys() & theirs.keys() - settled:
            if mine[key] != theirs[key]:
                yield key, one, other


def _said_by(rule: Rule) -> dict[str, object]:
    """What it says, by key; a variable is a key of its own."""
    values = {
        _IN_JOB.get(key, key): value for key in KEYS if (value := getattr(rule, key)) is not None
    }
    return values | {f"env.{name}": value for name, value in rule.env.items()}


@functools.lru_cache(maxsize=1024)
def _regex(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"([*?])", nfc(pattern))
    spelled = {"*": ".*", "?": "."}
    return re.compile("".join(spelled.get(part, re.escape(part)) for part in parts), re.DOTALL)
