"""The run's small control files as the boxes last reported them, kept on the laptop.

The mirror has the layout of the durable tier, so whoever looks at a run reads it as they would read
the tier itself. It is a copy and proves nothing: results are pulled, and compared with what was
published. Killed between any two lines it is gone on with: the next report is asked for what the
files hold by then.

Not covered: two commands that refresh at once may each write a file; both write what a box said.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from boxcar.shared import names, paths
from boxcar.shared.cell.cell_name import CELL_NAME
from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.files.release import FILE, PLAN
from boxcar.shared.paths import MANIFEST, RECEIPT, RESUME, DurablePaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.wire.question import Prefix
from boxcar.shared.wire.run_asks import FilePart

# Nothing else: a file in the place of one of these folders would shut all of it out.
_KNOWN = tuple(
    re.compile(rule)
    for rule in (
        rf"queues/{names.PLACE.pattern}\.txt",
        rf"(?:control|heartbeat|delivered)/{names.QUEUE.pattern}\.json",
        rf"journal/{names.QUEUE.pattern}\.jsonl",
        rf"(?:claims|accepted)/{CELL_NAME.pattern}\.json",
        rf"cells/{CELL_NAME.pattern}/(?:{MANIFEST}|{RECEIPT}|{RESUME})",
        rf"releases/{names.DIGEST.pattern}/(?:{PLAN}|{FILE})",
    )
)
# What is only appended to, or never changes.
_LASTING = ("journal/", "cells/", "releases/")


@dataclass(frozen=True)
class Mirror:
    """`folder` is the project's own; `run` names the run."""

    folder: Path
    run: str

    @property
    def tier(self) -> DurablePaths:
        return DurablePaths(self.folder, self.run)

    def prefixes_here(self, *boxes: str) -> dict[str, Prefix]:
        """What is here of the files that these have reported, by name."""
        found: dict[str, Prefix] = {}
        for name in sorted({name for box in boxes for name in self.names_of(box)}):
            try:
                data = paths.inside(self.tier.root, name).read_bytes()
            except FileNotFoundError:
                continue
            found[name] = (len(data), digest.of_bytes(data))
        return found

    def names_of(self, box: str) -> list[str]:
        """The files that `box` has reported."""
        return self._last_report(box)[0]

    def seen_at(self, box: str) -> str | None:
        """When `box` last answered, by the laptop's clock (UTC)."""
        return self._last_report(box)[1]

    def take_report(
        self, box: str, files: Sequence[FilePart], gone: Sequence[str], seen_at: str
    ) -> bool:
        """Write what a report of `box` brought, and remove what is `gone`.

        False where not all of it fits what is here.

        Then the box has to be asked again: what is missing now may be a queue, and its cells.
        Raises DamagedError for a name that is no control file's.
        """
        held = set(self.names_of(box)) - set(gone)
        is_whole = True
        for file in files:
            path = self._place(file.path)
            self._keep(file.path, next_start=file.data if file.offset == 0 else None)
            size_bytes = _write(path, file)
            if size_bytes is not None:
                held.add(file.path)
            is_whole = is_whole and size_bytes == file.size_bytes
        for name in gone:
            self._keep(name, next_start=b"")
            self._place(name).unlink(missing_ok=True)
        atomic.make_folder(self._index(box).parent)
        record = json.dumps({"seen_at": seen_at, "names": sorted(held)})
        atomic.write_whole(self._index(box), record.encode())
        return is_whole

    def kept(self, name: str) -> list[Path]:
        """What was here of a file before the box reported another content, or that it is gone."""
        path = self._kept(name)
        return sorted(path.parent.glob(f"{path.name}.*"))

    def _keep(self, name: str, next_start: bytes | None) -> None:
        """Keep what is here of a file that only grows, or never changes, and now begins otherwise:
        the box may have damaged it. `next_start` is how it begins now, None where it only grew.
        """
        path = self._place(name)
        if next_start is None or not name.startswith(_LASTING) or not path.exists():
            return
        data = path.read_bytes()
        if data and not next_start.startswith(data):
            aside = self._kept(name)
            atomic.make_folder(aside.parent)
            sha256 = digest.short(digest.of_bytes(data))
            atomic.write_whole(aside.with_name(f"{aside.name}.{sha256}"), data)

    def _kept(self, name: str) -> Path:
        return paths.inside(self.folder / "kept" / self.run, name)

    def boxes_with(self, name: str, boxes: Iterable[str]) -> Iterator[str]:
        """The boxes that have reported this file."""
        return (box for box in boxes if name in self.names_of(box))

    def drop(self) -> None:
        """Forget the run, because its tier is gone."""
        aside = self.tier.root.with_name(f".removing-{self.run}")
        shutil.rmtree(aside, ignore_errors=True)
        if self.tier.root.exists():
            self.tier.root.rename(aside)  # half a tier would look like one that lost results
        shutil.rmtree(self._index("x").parent, ignore_errors=True)
        shutil.rmtree(self._kept("x").parent, ignore_errors=True)
        shutil.rmtree(aside, ignore_errors=True)

    def _last_report(self, box: str) -> tuple[list[str], str | None]:
        try:
            record = json.loads(self._index(box).read_bytes())
            return list(record["names"]), str(record["seen_at"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return [], None  # a new or broken index: everything is sent again

    def _index(self, box: str) -> Path:
        return self.folder / "reports" / self.run / f"{box}.json"

    def _place(self, name: str) -> Path:
        path = paths.inside(self.tier.root, name)
        if not any(rule.fullmatch(name) for rule in _KNOWN):
            raise DamagedError(
                _("a box reported {name!r}, which is not a control file of a run", name=name)
            )
        return path


def _write(path: Path, file: FilePart) -> int | None:
    """How many bytes of what the box has `path` holds now; None where this does not fit it."""
    before = _head(path, file.offset)
    if before is None:
        return None  # another command refreshed meanwhile: the next report begins anew
    whole = before + file.data
    # A long file comes in several replies; only the last can be compared.
    if len(whole) >= file.size_bytes and digest.of_bytes(whole) != file.sha256:
        path.unlink(missing_ok=True)
        return None
    atomic.make_folder(path.parent)
    atomic.write_whole(path, whole)
    return len(whole)


def _head(path: Path, size_bytes: int) -> bytes | None:
    """The first bytes of what is here; None where there are not so many."""
    if size_bytes == 0:
        return b""
    try:
        data = path.read_bytes()[:size_bytes]
    except FileNotFoundError:
        return None
    return data if len(data) == size_bytes else None
