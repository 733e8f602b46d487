"""A cell's export that is a folder: made aside, and given its name once it is whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

PARTIAL = ".partial"


def put_folder(
    folder: Path, make: Callable[[Path], Path], place: Callable[[str], str], before: Iterable[Path]
) -> str:
    """Have `make` write below the folder that it gets, and return what it made; where that lies
    then, as `place` says of its name. What lay there `before` goes once the new one is whole.
    """
    partial = folder / PARTIAL
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    made = make(partial)
    where = place(made.name)
    for path in {*before, folder / where}:
        if path.exists():
            shutil.rmtree(path)
    (folder / where).parent.mkdir(parents=True, exist_ok=True)
    made.rename(folder / where)
    shutil.rmtree(partial, ignore_errors=True)
    return where
