"""Trainings that really fail at their first start, by the real agent; the second ends well."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_HEAD = """\
import json, os, sys, time
from pathlib import Path

config, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
rank = os.environ.get("RANK", "0")
started = out / f"started-{rank}"
is_first = not started.exists()
started.touch()


def main():
"""
_TAIL = """\


if is_first:
    main()
if rank == "0":
    (out / "m.json").write_text('{"step": 1}')
"""


@dataclass(frozen=True)
class End:
    """What the agent's journal says of the first attempt, and where the cell is in the end."""

    failure: str
    course: str
    state: str
    quote: str


def script(fails: str) -> str:
    """A train script that does this, as the body of a function, at its first start."""
    return f"{_HEAD}{textwrap.indent(textwrap.dedent(fails).strip(), '    ')}\n{_TAIL}"


def end_of(
    make_run: Callable[..., Any], fails: str, config: dict[str, Any] | None = None, **changes: Any
) -> End:
    """Of one cell whose script does this; `changes` are of the plan, or of what surrounds it."""
    run = make_run({"a": config or {}}, train=script(fails), **changes)
    run.finish()
    [first, *_] = run.events("cell.failed", "cell.retried")
    quotes = first.data.get("evidence") or [{"text": ""}]
    return End(first.data["failure"], first.data["class"], run.state("a"), quotes[0]["text"])
