"""Folders from one place to another by rsync. What came half is gone on with on the next call.

Nothing is ever deleted at the destination, and symbolic links are left out; not covered is a listed
name whose folder is a link, which rsync follows. What arrived is believed by nobody: the caller
compares it with a manifest.

Both places are on this machine so far. sysrsync spells the command; its `run` is not used, because
it would show rsync's words on our stdout, lose the exit code in a sentence, and start in the folder
that happened to be the current one when it was imported.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import sysrsync

from boxcar.formats import durable
from boxcar.formats.errors import BoxcarError, InputError, NoRoomError, TemporaryError

PARTIAL = ".rsync-partial"
SILENT_FOR_S = 60
# No -a: owners, groups, devices and links of another machine mean nothing here. `--` because a
# path is never a flag. No `--info`, which the rsync of macOS does not have.
_OPTIONS = ("--recursive", "--times", f"--partial-dir={PARTIAL}", f"--timeout={SILENT_FOR_S}")
_LOOK_EVERY_S = 0.2
_FILES_VANISHED = 24
_FILE_ERROR = 11
_LINK_CODES = {
    10: "a socket failed",
    12: "the data stream broke off",
    20: "it was interrupted",
    30: f"nothing came for {SILENT_FOR_S} s",
    35: "the other side did not answer",
    255: "the connection failed",
}


def fetch_folder(
    source: Path,
    destination: Path,
    *,
    files: Sequence[str] | None = None,
    keep_open: Iterable[int] = (),
    on_wait: Callable[[], None] = lambda: None,
) -> None:
    """Copy what `source` holds into `destination`, or only `files` (paths relative to it).

    `keep_open` are descriptors that rsync inherits: a lock on one of them is held until the last
    rsync process has ended, also where this process was killed. `on_wait` is called a few times a
    second meanwhile. Files that vanish under way and links are left out without a word. Raises
    InputError where rsync or the source is missing, NoRoomError, TemporaryError for a broken
    connection, and BoxcarError with rsync's own words for the rest.
    """
    check_rsync()
    if not source.is_dir():
        raise BoxcarError(f"{source}: expected a folder to copy from, found none")
    durable.make_folder(destination)
    command = _command(source, destination, with_list=files is not None)
    # A bare name that begins with # or ; would be a comment in the list.
    names = None if files is None else b"".join(b"./" + os.fsencode(f) + b"\0" for f in files)
    code, words = _run(command, names, tuple(keep_open), on_wait)
    _check(code, words, source, destination)


def send_folder(source: Path, destination: Path) -> None:
    """Copy what `source` holds into `destination`. Raises as `fetch_folder` does."""
    fetch_folder(source, destination)


def check_rsync() -> None:
    """Raise InputError, with the command to type, where there is no rsync on this machine."""
    if shutil.which("rsync") is None:
        raise InputError(
            "rsync is missing on this machine. Type: sudo apt-get install rsync "
            "(Debian, Ubuntu, WSL), sudo dnf install rsync (Fedora), brew install rsync (macOS)"
        )


def _command(source: Path, destination: Path, *, with_list: bool) -> list[str]:
    # Absolute, because rsync takes `name:rest` for a host.
    command: list[str] = sysrsync.get_rsync_command(
        source=str(source.absolute()),
        destination=str(destination.absolute()),
        sync_source_contents=True,
        options=[*_OPTIONS, *(("-0", "--files-from=-") if with_list else ()), "--"],
    )
    return command


def _run(
    command: Sequence[str],
    names: bytes | None,
    keep_open: tuple[int, ...],
    on_wait: Callable[[], None],
) -> tuple[int, str]:
    """rsync's exit code and what it said on stderr."""
    with subprocess.Popen(
        command,
        cwd="/",
        stdin=subprocess.DEVNULL if names is None else subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=keep_open,
    ) as rsync:
        try:
            words = _words(rsync, names, on_wait)
        except BaseException:
            rsync.terminate()  # not kill: it puts what it has into the partial folder first
            raise
    return rsync.returncode, words.decode("utf-8", "replace").strip()


def _words(
    rsync: subprocess.Popen[bytes], names: bytes | None, on_wait: Callable[[], None]
) -> bytes:
    while True:
        try:
            return rsync.communicate(names, timeout=_LOOK_EVERY_S)[1]
        except subprocess.TimeoutExpired:
            names = None  # it is being written already
            on_wait()


def _check(code: int, words: str, source: Path, destination: Path) -> None:
    if code in (0, _FILES_VANISHED):
        return
    told = f"{source} -> {destination}: rsync ended with code {code}: {words[-2000:]}"
    if code == _FILE_ERROR and any(f"({n})" in words for n in (errno.ENOSPC, errno.EDQUOT)):
        raise NoRoomError(f"{told}. Make room on that disk and run the same command again.")
    if code in _LINK_CODES or code < 0:
        why = _LINK_CODES.get(code, f"signal {-code} ended it")
        raise TemporaryError(f"{told} ({why}). The same command goes on where this one stopped.")
    raise BoxcarError(told)
