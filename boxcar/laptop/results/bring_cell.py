"""One published cell from the durable tier into its place in the results.

Fetched into `.partial/`, where nothing is believed; compared with the manifest; made durable; and
only then moved whole. What a killed fetch left is gone on with, and thrown away where it is wrong.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from boxcar.laptop.hosts import folders
from boxcar.laptop.hosts.remote_folder import Remote
from boxcar.laptop.results import compare, results_folder
from boxcar.laptop.run.open_run import OpenRun
from boxcar.shared import paths
from boxcar.shared.disk import atomic, checked_copy
from boxcar.shared.disk.tree_sync import TreeSync
from boxcar.shared.errors import BoxcarError, DamagedError, NoRoomError, TemporaryError
from boxcar.shared.files import manifest, resume_pointer
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, chained, mark

OnBytes = Callable[[int], None]
TRIES = 2
# rsync keeps two copies of a file for a moment.
_MOST_COPIES = 2
# To look at what came takes at most one part of so many.
_REST = 50
_SLACK_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Terms:
    """Of all that a pull brings: `held` is the descriptor of the results' lock, which rsync keeps;
    `on_wait` is called now and then, and may raise to end it.
    """

    held: int
    most_kib_s: int = 0
    on_wait: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Published:
    """What the tier says of a cell: the manifest, and the very bytes that it was read from."""

    cell: str
    data: bytes
    manifest: Manifest

    @property
    def names(self) -> list[str]:
        """Every file that is taken; others in the tier's folder are not."""
        return [*self.proven, *self.carried]

    @property
    def proven(self) -> list[str]:
        """Those without which nothing is kept."""
        return [*(file.path for file in self.manifest.files), paths.MANIFEST]

    @property
    def carried(self) -> list[str]:
        return [file.path for file in self.manifest.carried.files]


def read_published(run: OpenRun, cell: str) -> Published | None:
    """What was published of the cell, or None where nothing was. Raises DamagedError, OSError."""
    path = run.tier.manifest(cell)
    compare.refuse_link(run.tier.root, f"cells/{cell}/{paths.MANIFEST}")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    found = manifest.parse_manifest(data, str(path))
    compare.check_manifest(found, run.plan.run, cell, path)
    return Published(cell, data, found)


def fetch_cell(run: OpenRun, wanted: Published, terms: Terms, on_bytes: OnBytes) -> Path | None:
    """Put the cell into its place; where an older copy of it lies now, if there was one.

    `on_bytes` is told how many have come, without those that were here before. What is only
    carried, and does not come as it was published, is left out. Raises DamagedError where what else
    came is not what was published, NoRoomError, TemporaryError, OSError.
    """
    source, partial = run.published_folder(wanted.cell), partial_of(run, wanted)
    refuse_links(source, wanted)
    taken = _take_what_is_here(run, wanted)
    left = [f for f in wanted.manifest.all_files if not paths.inside(partial, f.path).exists()]
    checked_copy.check_room(partial, [file.size_bytes for file in left])
    look_on = _look_on(source, [partial], wanted.manifest.size_bytes, terms, on_bytes)

    def fetch(names: Sequence[str]) -> None:
        _fetch(source, partial, names, terms, look_on)

    _fill(source, partial, wanted, taken, fetch)
    _fill_carried(partial, wanted, fetch)
    return keep_cell(run, partial, wanted)


def _fetch(
    source: Path | Remote,
    target: Path,
    names: Sequence[str],
    terms: Terms,
    on_wait: Callable[[], None],
) -> None:
    folders.fetch_folder(
        source,
        target,
        files=names,
        keep_open=[terms.held],
        on_wait=on_wait,
        most_kib_s=terms.most_kib_s,
    )


def _take_what_is_here(run: OpenRun, wanted: Published) -> set[str]:
    """The names of the files that need not come: they are in an older copy of the cell, or one is
    its live checkpoint that `watch` has brought. They are copied, and proven with the others.
    """
    partial, before = run.results.partial / wanted.cell, run.results.cell(wanted.cell)
    taken = set()
    with contextlib.suppress(BoxcarError, OSError):
        pointer = resume_pointer.read_file(run.results.resume_pointer(wanted.cell))
        for file in wanted.manifest.files:
            live = pointer.file if pointer and pointer.file.sha256 == file.sha256 else file
            for folder, record in ((before, file), (run.results.resume(wanted.cell), live)):
                target = paths.inside(partial, file.path)
                if not target.exists() and not manifest.compare_one(folder, record):
                    atomic.make_folder(target.parent)
                    shutil.copyfile(paths.inside(folder, record.path), target)
                    taken.add(file.path)
    return taken


def partial_of(run: OpenRun, wanted: Published) -> Path:
    """Where the cell lies while it comes. Raises DamagedError where a link is in its place."""
    partial = run.results.partial / wanted.cell
    compare.refuse_link(run.results.root, f"{run.results.partial.name}/{wanted.cell}")
    atomic.make_folder(partial)
    return partial


def refuse_links(source: Path | Remote, wanted: Published, head: str = "") -> None:
    """Raise DamagedError where a name of the cell is a link on this machine. rsync leaves a link
    out, but follows one that is a folder.
    """
    if isinstance(source, Path):
        for name in wanted.names:
            compare.refuse_link(source, f"{head}{name}")


def keep_cell(run: OpenRun, partial: Path, wanted: Published) -> Path | None:
    """What came and is right, into its place; where an older copy lies now, if there was one."""
    with TreeSync(partial) as sync:
        make_durable(run, [wanted], sync)
    return place(run, wanted.cell)


def _fill(
    source: Path | Remote,
    partial: Path,
    wanted: Published,
    taken: Collection[str],
    fetch: Callable[[Sequence[str]], None],
) -> None:
    for _try in range(TRIES):
        fetch([name for name in wanted.proven if name not in taken])
        if not (problems := wrong(partial, wanted)):
            return
        # rsync believes size and time, so it takes a damaged leftover for what it should be.
        taken = ()
        if any(paths.has_symlink(partial, name) for name in wanted.proven):
            shutil.rmtree(partial)
            atomic.make_folder(partial)
        drop_wrong(partial, wanted.manifest.files)
        (partial / paths.MANIFEST).unlink(missing_ok=True)
    raise DamagedError(
        _(
            "{source}: the copy differs from what was published: {problems}",
            source=source,
            problems=chained(mark("{first}; {second}"), problems),
        )
    )


def _fill_carried(partial: Path, wanted: Published, fetch: Callable[[Sequence[str]], None]) -> None:
    if not wanted.carried:
        return
    for _try in range(TRIES):
        try:
            fetch(wanted.carried)
        except (TemporaryError, NoRoomError):
            raise
        except BoxcarError:
            pass  # one of them is not there any more; the others may have come
        if not drop_wrong(partial, wanted.manifest.carried.files):
            return


def drop_wrong(partial: Path, files: tuple[FileRecord, ...]) -> bool:
    """Remove those that did not come right; whether there is any such file."""
    differences = manifest.compare(partial, files)
    for difference in differences:
        with contextlib.suppress(OSError):
            if not paths.has_symlink(partial, difference.path):
                paths.inside(partial, difference.path).unlink()
    return bool(differences)


def _look_on(
    source: Path | Remote,
    partials: Sequence[Path],
    size_bytes: int,
    terms: Terms,
    on_bytes: OnBytes,
) -> Callable[[], None]:
    """Tells what has come from now on."""
    before = sum(folders.bytes_come(one) for one in partials)

    def look() -> None:
        refuse_too_much(source, partials, size_bytes)
        came = sum(folders.bytes_come(one) for one in partials)
        on_bytes(max(0, came - before))

    look_seldom = seldom(look)

    def look_on() -> None:
        terms.on_wait()
        look_seldom()

    return look_on


def seldom(look: Callable[[], None]) -> Callable[[], None]:
    """`look`, but so seldom that it takes little of the time: 10,000 files are a long walk."""
    due_s = 0.0

    def look_if_due() -> None:
        nonlocal due_s
        if (began_s := time.monotonic()) >= due_s:
            look()
            ended_s = time.monotonic()
            due_s = ended_s + _REST * (ended_s - began_s)

    return look_if_due


def refuse_too_much(source: Path | Remote, partials: Sequence[Path], size_bytes: int) -> None:
    """Raise DamagedError where much more comes than was told: it would fill this disk."""
    came_bytes = sum(folders.bytes_below(one) for one in partials)
    if came_bytes <= _MOST_COPIES * size_bytes + _SLACK_BYTES:
        return
    for one in partials:
        shutil.rmtree(one, ignore_errors=True)
    raise DamagedError(
        _(
            "{source}: received {came_bytes} bytes, but only {size_bytes} bytes are there. "
            "What was received has been removed",
            source=source,
            came_bytes=came_bytes,
            size_bytes=size_bytes,
        )
    )


def wrong(partial: Path, wanted: Published) -> list[str]:
    """What of that which came is not what was published, in words."""
    found: list[str] = [
        difference.sentence for difference in manifest.compare(partial, wanted.manifest.files)
    ]
    if (partial / paths.MANIFEST).read_bytes() != wanted.data:
        found.append(_("{manifest} was replaced meanwhile", manifest=paths.MANIFEST))
    return found


def _prune(partial: Path, keep: set[str]) -> None:
    """Remove what an earlier fetch of another result left here."""
    for path in sorted(partial.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(partial).as_posix() not in keep:
            path.unlink()


def make_durable(
    run: OpenRun, cells: Iterable[Published], sync: TreeSync, also: Collection[str] = ()
) -> None:
    """Have the disk take what came of these, and nothing that an earlier fetch left. OSError.

    `also` are names that the caller has put beside each cell's files.
    """
    files: list[Path] = []
    parents: list[Path] = []
    for cell in cells:
        partial = run.results.partial / cell.cell
        names = {*cell.names, *also}
        _prune(partial, names)
        named = (paths.inside(partial, name) for name in names)
        files += [path for path in named if path.is_file()]
        parents += [partial, *(path for path in partial.rglob("*") if path.is_dir())]
    sync.make_durable(files, parents, sum(path.stat().st_size for path in files))


def place(run: OpenRun, cell: str, *, is_synced: bool = True) -> Path | None:
    """What is durable, into its place; where an older copy of it lies now, if there was one.

    Not `is_synced`: who places many makes their new names durable together.
    """
    partial, target = run.results.partial / cell, run.results.cell(cell)
    compare.refuse_link(run.results.root, target.parent.name)
    atomic.make_folder(target.parent)
    is_taken = target.exists() or target.is_symlink()
    replaced = results_folder.set_aside(run.results, target) if is_taken else None
    partial.rename(target)
    if is_synced:
        atomic.sync_folder(target.parent)
        atomic.sync_folder(partial.parent)
    return replaced


# Many small cells in one rsync from each box: a connection for each would be most of the time.
#
# They come to where each cell lies while it comes, and nothing is believed of them: each is
# compared for itself afterwards, and what is not there or not right is fetched alone, which also
# says why.


# A larger one is worth an rsync of its own, and a line of its own of how far it is.
SMALL_BYTES = 32 * 1024 * 1024
# What is lost where the link breaks is fetched again, so that not all is asked for at once.
_MOST_BYTES, _MOST_CELLS = 512 * 1024 * 1024, 2000


@dataclass(frozen=True)
class Portion:
    """Cells that lie in one folder, of a box or of this machine."""

    source: Path | Remote
    cells: tuple[Published, ...]

    @property
    def size_bytes(self) -> int:
        return sum(cell.manifest.size_bytes for cell in self.cells)


def portions_of_cells(run: OpenRun, wanted: Iterable[Published]) -> list[Portion]:
    """Those of `wanted` that are small, by where they lie; none for a folder with only one. The
    smallest come first.
    """
    found: dict[str, list[tuple[Path | Remote, Published]]] = {}
    for cell in sorted(wanted, key=lambda cell: cell.manifest.size_bytes):
        if cell.manifest.size_bytes > SMALL_BYTES:
            break
        with contextlib.suppress(BoxcarError, OSError):  # said when the cell's turn comes
            source = _above(run.published_folder(cell.cell))
            found.setdefault(str(source), []).append((source, cell))
    return [
        Portion(some[0][0], tuple(cell for _, cell in some))
        for same in found.values()
        for some in _parts(same)
        if len(some) > 1
    ]


def fetch_small_cells(run: OpenRun, portion: Portion, terms: Terms, on_bytes: OnBytes) -> set[str]:
    """Bring them to where they lie while they come; those that came as they were published.

    Whatever goes wrong is left to the fetch of the one cell. `on_bytes` is as in `fetch_cell`.
    """
    with contextlib.suppress(BoxcarError, OSError):
        names: list[str] = []
        for cell in portion.cells:
            refuse_links(portion.source, cell, f"{cell.cell}/")
            partial_of(run, cell)
            taken = _take_what_is_here(run, cell)
            names += [f"{cell.cell}/{name}" for name in cell.names if name not in taken]
        sizes = [file.size_bytes for cell in portion.cells for file in cell.manifest.all_files]
        checked_copy.check_room(run.results.partial, sizes)
        partials = [run.results.partial / cell.cell for cell in portion.cells]
        look_on = _look_on(portion.source, partials, portion.size_bytes, terms, on_bytes)
        _fetch(portion.source, run.results.partial, names, terms, look_on)
    return {cell.cell for cell in portion.cells if _came(run, cell)}


def keep_small_cells(
    run: OpenRun, cells: Collection[Published], sync: TreeSync
) -> dict[str, Path | Exception | None]:
    """Put those that came into their places, with one wait for the disk for all of them.

    By cell, where an older copy of it lies now, or what kept it from its place. Raises OSError
    where the disk has not taken what came; then nothing was put anywhere.
    """
    for cell in cells:
        _add_receipt(run, cell)
    make_durable(run, cells, sync, also=[paths.RECEIPT])
    placed: dict[str, Path | Exception | None] = {}
    for cell in cells:
        try:
            placed[cell.cell] = place(run, cell.cell, is_synced=False)
        except (BoxcarError, OSError) as error:
            placed[cell.cell] = error
    sync.make_durable([], [run.results.cells, run.results.partial])
    return placed


def _add_receipt(run: OpenRun, cell: Published) -> None:
    """The box's, as it is known here: alone each would be one more wait for the disk."""
    here = run.results.partial / cell.cell / paths.RECEIPT
    with contextlib.suppress(BoxcarError, OSError):  # said when the cell's turn comes
        here.unlink(missing_ok=True)  # a killed pull's, of another result
        compare.refuse_link(run.tier.cell(cell.cell), paths.RECEIPT)
        here.write_bytes(run.tier.receipt(cell.cell).read_bytes())


def _above(source: Path | Remote) -> Path | Remote:
    if isinstance(source, Remote):
        return replace(source, path=str(PurePosixPath(source.path).parent))
    return source.parent


def _parts(
    cells: Sequence[tuple[Path | Remote, Published]],
) -> Iterable[Sequence[tuple[Path | Remote, Published]]]:
    part: list[tuple[Path | Remote, Published]] = []
    size_bytes = 0
    for source, cell in cells:
        size_bytes += cell.manifest.size_bytes
        if part and (size_bytes > _MOST_BYTES or len(part) == _MOST_CELLS):
            yield part
            part, size_bytes = [], cell.manifest.size_bytes
        part.append((source, cell))
    yield part


def _came(run: OpenRun, cell: Published) -> bool:
    with contextlib.suppress(BoxcarError, OSError):
        partial = partial_of(run, cell)
        return not wrong(partial, cell) and not drop_wrong(partial, cell.manifest.carried.files)
    return False
