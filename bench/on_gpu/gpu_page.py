"""The part of docs/performance.md that is made from what `make gpu` has measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.row import of_document

PAGE = Path(__file__).parents[2] / "docs/performance.md"
BEGIN, END = "<!-- made by `python -m bench.on_gpu --page` -->", "<!-- end -->"


def write(document: dict[str, Any]) -> int:
    """Put the table where the page has its marks."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{section(document)}\n{END}{after}", encoding="utf-8")
    return 0


def section(document: dict[str, Any]) -> str:
    """Markdown: what it was measured on, and a row for each figure."""
    machine = document["machine"]
    if "gpu" in machine:
        on = f"{machine['gpu']}, torch {machine['torch']}, Python {machine['python']}"
        head = f"Measured by `make gpu` in one run on one {on}."
    else:
        head = "Not measured since the script was written: no GPU could be had."
    table = ["| what | value | beside | ratio | to reach |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([head, "", *table, *_rows(document["parts"])]) + "\n"


def _rows(parts: dict[str, Any]) -> Iterator[str]:
    for part in parts.values():
        for row in part["rows"]:
            fields = of_document(row).fields
            cells = (text.replace("|", "\\|").replace("\n", " ") for text in fields)
            yield f"| {' | '.join(cells)} |"
