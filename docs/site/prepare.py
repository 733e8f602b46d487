"""Copy the pages to where the site is built from: README.md is its home, and a link to a file that
is no page leads to the source, or is its text alone while the project has no address.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_HOMES = {"README.md": "index.md", "README.zh.md": "index.zh.md"}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")
_SOURCE = re.compile(r'^Source = "([^"]+)"$', re.MULTILINE)
_SHOWN = (".md", ".svg", ".png", ".json")


def prepare(to: Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    for path, place in places().items():
        target = to / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(_with_links(path, place), encoding="utf-8")
        else:
            shutil.copy(path, target)


def places() -> dict[Path, str]:
    """Where each file of the site stands in it."""
    docs = ROOT / "docs"
    found = {path: path.relative_to(docs).as_posix() for path in docs.rglob("*")}
    shown = {path: place for path, place in found.items() if path.suffix in _SHOWN}
    return shown | {ROOT / name: home for name, home in _HOMES.items()}


def _with_links(page: Path, place: str) -> str:
    known = places()
    found = _SOURCE.search((ROOT / "pyproject.toml").read_text("utf-8"))

    def led(link: re.Match[str]) -> str:
        mark, text, name, anchor = link[1], link[2], link[3], link[4] or ""
        target = Path(os.path.normpath(page.parent / name))
        is_anchor_of_other = anchor and ".zh" in place and target.with_suffix(".zh.md") in known
        if target.name.endswith(".zh.md") or is_anchor_of_other:
            return text  # the site has its own switch of languages
        if target in known:
            there = os.path.relpath(known[target], Path(place).parent)
            return f"{mark}[{text}]({there}{anchor})"
        source = f"{found[1]}/blob/main/{target.relative_to(ROOT)}" if found else ""
        return f"[{text}]({source})" if source else text

    return _LINK.sub(led, page.read_text("utf-8"))


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
