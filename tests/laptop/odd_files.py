"""A folder of files with names that shells and tools misread; each file holds its own name."""

from __future__ import annotations

from pathlib import Path

NAMES = (
    "a b.pth", "-rf", "#no comment", ";nor this", " leads", "trails ", "ünï", "new\nline",
    "$(touch x)", "sub/deep.json", "back\\slash", "*", "[ab]", "it's", 'q"q', "n" * 200, "empty!",
)  # fmt: skip


def fill(folder: Path, names: tuple[str, ...] = NAMES) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def found(folder: Path) -> dict[str, str]:
    """The content of every file below, by its relative path."""
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }
