"""The job's `links`: names below {out} that lead to folders of the code.

So a script that reads ./data and writes ./checkpoints runs unchanged under workdir: out. They are
no part of a result: who looks through {out} leaves them out by their names, and any other link that
leads out of it is refused as ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic


def place(out: Path, code: Path, links: Mapping[str, str], aside: Path) -> list[Path]:
    """Make them; those of an earlier release lead to `code` from now on. What an attempt left in
    the place of one is moved into `aside`, and returned. Raises OSError.
    """
    moved = []
    for name, folder in links.items():
        link, target = out / name, code / folder
        if link.is_symlink():
            link.unlink()
        elif link.exists():
            atomic.make_folder(aside)
            moved.append(aside / f"{name}-{timestamp.utc_now().replace(':', '')}")
            link.rename(moved[-1])
        link.symlink_to(target, target_is_directory=True)
    return moved
