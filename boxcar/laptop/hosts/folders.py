"""Folders from one place to another. A line that was cut is gone on with, and what came half is
gone on with on the next call.

By rsync, between two folders here or over ssh with a box; by tar over ssh with a box that has none.
Nothing is ever deleted at the destination, and symbolic links are left out; not covered is a listed
name whose folder is a link, which rsync follows. What arrived is believed by nobody: the caller
compares it with a manifest.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from boxcar.laptop.common import side_by_side
from boxcar.laptop.hosts import by_rsync, by_tar
from boxcar.laptop.hosts.by_rsync import NoRsyncThere
from boxcar.laptop.hosts.connection import TRIES, pause_s
from boxcar.laptop.hosts.remote_folder import Remote
from boxcar.laptop.hosts.ssh_errors import LinkCut, Unreachable
from boxcar.shared.disk import atomic
from boxcar.shared.errors import BoxcarError, InputError
from boxcar.shared.sentence import _

_told: set[str] = set()
_telling = threading.Lock()


def fetch_folder(
    source: Path | Remote,
    destination: Path,
    *,
    files: Sequence[str] | None = None,
    keep_open: Iterable[int] = (),
    on_wait: Callable[[], None] = lambda: None,
    most_kib_s: int = 0,
) -> None:
    """Copy what `source` holds into `destination`, or only `files` (paths relative to it).

    `keep_open` are descriptors that rsync inherits: a lock on one of them is held until the last
    rsync process has ended, also where this process was killed. `on_wait` is called a few times a
    second meanwhile, and may raise to end it. `most_kib_s` leaves others room on the link. Files
    that vanish under way and links are left out without a word. Raises InputError where rsync is
    missing here, NoRoomError, TemporaryError for a broken connection, ssh_errors' for a box that
    lets nobody in, and BoxcarError with rsync's own words for the rest.
    """
    if not isinstance(source, Remote) or source.has_rsync:
        by_rsync.find_rsync()
    if not isinstance(source, Remote) and not source.is_dir():
        raise BoxcarError(_("{source}: no such folder to copy from", source=source))
    atomic.make_folder(destination)
    # A bare name that begins with # or ; would be a comment in the list.
    names = None if files is None else b"".join(b"./" + os.fsencode(f) + b"\0" for f in files)

    def move() -> None:
        on_wait()
        if not _by_rsync(
            source, destination, names, tuple(keep_open), lambda _: on_wait(), most_kib_s=most_kib_s
        ):
            assert isinstance(source, Remote)
            by_tar.fetch_by_tar(source, destination, files, on_wait, most_kib_s=most_kib_s)

    _go_on(source, move, lambda: bytes_below(destination))


def send_folder(
    source: Path,
    destination: Path | Remote,
    *,
    on_bytes: Callable[[int], None] = lambda _: None,
    bases: Sequence[str] = (),
    copied: Callable[[], Collection[str]] = lambda: (),
    has_own_connection: bool = True,
) -> None:
    """Copy what `source` holds into `destination`. Raises as `fetch_folder` does.

    `bases` are folders on the box, relative to `destination`: what they hold alike is not sent.
    Where the box has no rsync, `copied` has it copy that, and says which files it has.
    Without a connection of its own, questions to the box wait until all is sent.

    Nobody may read `destination` on a box meanwhile: a file there grows under its own name.
    `on_bytes` is told how many bytes have gone, as far as this machine's rsync tells.
    """
    if not source.is_dir():
        raise BoxcarError(_("{source}: no such folder to copy from", source=source))
    if not isinstance(destination, Remote):
        by_rsync.find_rsync()
        atomic.make_folder(destination)

    told = 0

    def hear(size_bytes: int) -> None:
        nonlocal told
        side_by_side.end_if_given_up()
        told += size_bytes > 0
        on_bytes(size_bytes)

    def move() -> None:
        if not _by_rsync(
            source, destination, None, (), hear, bases=bases, has_own_connection=has_own_connection
        ):
            assert isinstance(destination, Remote)
            by_tar.send_by_tar(
                source,
                destination,
                hear,
                has_own_connection=has_own_connection,
                unchanged=copied() if bases else (),
            )

    _go_on(destination, move, lambda: told)


def bytes_below(folder: Path) -> int:
    """What the files in `folder` take, without following links; 0 for one that is not there."""
    return sum(size_bytes for _path, size_bytes in _files(folder))


def bytes_come(folder: Path) -> int:
    """The same of a folder to which rsync copies. What it had of a file grows in place, but rsync
    before 3.2 copies that into a new file first, which counts from where it has more.
    """
    whole = had = new = 0
    for path, size_bytes in _files(folder):
        if path.parent.name == by_rsync.PARTIAL:
            had += size_bytes
        elif by_rsync.TEMPORARY.fullmatch(path.name):
            new += size_bytes
        else:
            whole += size_bytes
    return whole + max(had, new)


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    for parent, _folders, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            with suppress(FileNotFoundError):  # rsync renames meanwhile
                yield path, path.lstat().st_size


def check_rsync(tell: Callable[[str], None], *, most_kib_s: int = 0) -> None:
    """Raise InputError, with the command to type, where there is no good rsync on this machine."""
    is_open = by_rsync.find_rsync().is_open
    if is_open and most_kib_s:
        raise InputError(
            _("--bwlimit needs rsync itself, not macOS' openrsync. Type: brew install rsync")
        )
    if is_open:
        tell(
            _(
                "this machine's rsync is macOS' openrsync: it works, but shows no progress and is "
                "not tested with Boxcar. Better: brew install rsync"
            )
        )


def _go_on(place: Path | Remote, move: Callable[[], None], moved: Callable[[], int]) -> None:
    """`move`, and again where the line was cut, as long as each try moves something. A box that was
    never reached is given up at once, and one that went away after TRIES tries, a minute.
    """
    before, left, cut = moved(), 0, None
    while True:
        side_by_side.end_if_given_up()  # Ctrl-C ends ssh too, and looks like a line that was cut
        if cut:
            assert isinstance(place, Remote)
            said = _("{alias}: the connection was lost; the copy continues", alias=place.ssh.alias)
            _tell_once(place, said)
        try:
            return move()
        except Unreachable as error:
            now = moved()
            # A line that drops often may drop before the first byte.
            is_first_cut = cut is None and (isinstance(error, LinkCut) or error.is_brief)
            is_new = now > before or is_first_cut
            left, cut = (TRIES, error) if is_new else (left - 1, cut or error)
            before = max(before, now)
            if left < 1:
                raise cut from None
        time.sleep(pause_s(TRIES - left))


def _by_rsync(
    source: Path | Remote,
    destination: Path | Remote,
    names: bytes | None,
    keep_open: tuple[int, ...],
    on_look: Callable[[int], None],
    *,
    most_kib_s: int = 0,
    bases: Sequence[str] = (),
    has_own_connection: bool = True,
) -> bool:
    """False where the box has no rsync; nothing was copied then."""
    place = next((p for p in (source, destination) if isinstance(p, Remote)), None)
    if place is None or place.has_rsync:
        words = by_rsync.rsync_command(
            by_rsync.find_rsync(),
            source,
            destination,
            with_list=names is not None,
            most_kib_s=most_kib_s,
            bases=bases,
            has_own_connection=has_own_connection,
        )
        try:
            by_rsync.raise_for_end(
                *by_rsync.run_rsync(words, names, keep_open, on_look), source, destination
            )
            return True
        except NoRsyncThere:
            pass
    assert place is not None
    _tell_once(
        place,
        _(
            "{alias}: rsync does not work there, so files are sent by tar over ssh; a file that is "
            "cut off starts over. Better: apt-get install rsync on the box, and a login shell that "
            "prints nothing",
            alias=place.ssh.alias,
        ),
    )
    return False


def _tell_once(place: Remote, text: str) -> None:
    with _telling:
        if text not in _told:
            _told.add(text)
            place.ssh.tell(text)
