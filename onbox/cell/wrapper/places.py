"""Where an attempt's files are, as texts: what of boxcar/shared/paths.py its wrapper needs.

The module of Path costs a third of a bare Python's start, in the gap between two cells.
"""

from __future__ import annotations


def plain(path: str) -> str:
    """As a Path spells it: an attempt's cookie holds it, and is compared with one made of that."""
    head = "//" if path.startswith("//") and not path.startswith("///") else "/"
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return (head if path.startswith("/") else "") + "/".join(parts)


class Scratch:
    """See ScratchPaths."""

    def __init__(self, data_dir: str, run: str) -> None:
        self.data_dir, self.run = plain(data_dir), run
        self.root = f"{self.data_dir}/boxcar/{run}"

    def cell(self, cell: str) -> str:
        return f"{self.root}/cells/{cell}"

    def out(self, cell: str) -> str:
        return f"{self.cell(cell)}/out"

    def log(self, cell: str) -> str:
        return f"{self.cell(cell)}/{cell}.log"

    def running(self, cell: str) -> str:
        return f"{self.cell(cell)}/running.json"

    def done(self, cell: str, attempt: int) -> str:
        return f"{self.cell(cell)}/done-{attempt}.json"


class Durable:
    """See DurablePaths."""

    def __init__(self, durable_dir: str, run: str) -> None:
        self.durable_dir, self.run = plain(durable_dir), run

    def manifest(self, cell: str) -> str:
        return f"{self.durable_dir}/boxcar/{self.run}/cells/{cell}/manifest.json"
