"""rsync as a program: which one this machine has, its words, its run, and what its end means.

No path on a box stands in rsync's own words: until 3.2.4 rsync left them to the box's shell to take
apart, later ones quote them, and macOS' openrsync again does not. The box's side is a script that
goes to the folder and starts rsync there, on `.`. Bases of a push are plain (run_asks.is_base).
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from sysrsync.command_maker import get_rsync_command

from boxcar.laptop.common.text_layout import plain
from boxcar.laptop.hosts import remote_folder
from boxcar.laptop.hosts.child_environment import child_environment
from boxcar.laptop.hosts.remote_folder import Remote
from boxcar.shared.errors import BoxcarError, InputError, NoRoomError, TemporaryError
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

PARTIAL = ".rsync-partial"
# The name of a file while it comes.
TEMPORARY = re.compile(r"\..+\.[A-Za-z0-9]{6}")
VERSION_TIMEOUT_S = 10
# No -a: owners, groups, devices and links of another machine mean nothing here.
_OPTIONS = ("--recursive", "--times")
_HERE = f"--partial-dir={PARTIAL}"
# The rsync on a box does not learn that the link was cut: for a quarter of an hour it would hold
# what came in a temporary file, where the next call cannot find it.
_ON_A_BOX = "--inplace"
_START = 'rsync "$@"'
_FILE_ERROR = 11
_FREE = re.compile(r"\s\d+\s+\d+\s+(\d+)\s+\d+%\s")
_FULL_KIB = 256
_INSTALL = (
    "sudo apt-get install rsync (Debian, Ubuntu, WSL), sudo dnf install rsync (Fedora), "
    "brew install rsync (macOS)"
)
_LOOK_EVERY_S = 0.2
_TAIL_BYTES = 400
_VERSION = re.compile(r"^rsync\s+version\s+v?(\d+)\.(\d+)", re.MULTILINE)
_SENT = re.compile(rb"([\d,]+)\s+\d+%")
_FILES_VANISHED = 24
_INTERRUPTED = 20  # by Ctrl-C, which every program of a terminal hears: nobody goes on after it
_LINK_CODES = {
    10: _("a socket failed"),
    12: _("the data stream broke off"),
    30: _("no data for too long"),
    35: _("the other side did not answer"),
    255: _("the connection failed"),
}
# openrsync ends with a code of its own when ssh ended with 255.
_LINK_WORDS = re.compile(r"exited with status 255|unexpected end of file")
_NO_RSYNC = re.compile(
    r"is your shell clean|sh: .*rsync: (?:.*not found|Permission denied)|remote command not found"
)
_NO_RSYNC_CODES = (2, 12, 126, 127)
# `rsync: [receiver] mkstemp "/x/.a.gY7" failed: Permission denied (13)`: whose, and what.
_AT_A_PATH = re.compile(r'"([^"]+)"[^"]*?: ([A-Z][^:()]*) \(\d+\)$')
_DRESSING = re.compile(r"^rsync(?:\(\d+\))?: (?:\[\w+\] )?")
_SUMMARY = re.compile(r"rsync (?:error|warning): ")
# Of 3.5, without the flag that it proposes; the line with the path comes behind.
_REFUSAL = re.compile(r"refusing to [^;]+")
_MOST_REASON = 300


class NoRsyncThere(Exception):
    """The box has no rsync, or its login shell talks into rsync's stream; nothing was sent."""


@dataclass(frozen=True)
class Rsync:
    """The rsync of this machine. `version` is (0, 0) where it does not say."""

    version: tuple[int, int]
    is_open: bool

    @property
    def tells_progress(self) -> bool:
        return not self.is_open and self.version >= (3, 1)


def find_rsync() -> Rsync:
    """Raises InputError, with the command to type, where there is none, or one from before 3.0."""
    program = shutil.which("rsync")
    if program is None:
        raise InputError(
            _("rsync is not installed on this machine. Type: {install}", install=_INSTALL)
        )
    rsync = _ask_version(program)
    if not rsync.is_open and (0, 0) < rsync.version < (3, 0):
        raise InputError(
            _(
                "{program} is rsync {major}.{minor}; 3.0 or newer is needed. Type: {install}",
                program=program,
                major=rsync.version[0],
                minor=rsync.version[1],
                install=_INSTALL,
            )
        )
    return rsync


def read_version(said: str) -> Rsync:
    """What `rsync --version` printed. openrsync calls itself 2.6.9 compatible, and is not."""
    if "openrsync" in said:
        return Rsync((0, 0), is_open=True)
    version = _VERSION.search(said)
    return Rsync((int(version[1]), int(version[2])) if version else (0, 0), is_open=False)


def rsync_command(
    rsync: Rsync,
    source: Path | Remote,
    destination: Path | Remote,
    *,
    with_list: bool,
    most_kib_s: int = 0,
    bases: Sequence[str] = (),
    has_own_connection: bool = True,
) -> list[str]:
    """One of the two may be on a box. `most_kib_s` leaves room on the link; 0: all of it.

    `bases` are folders on the box, relative to the destination, that have files of the same names:
    what is equal there is copied on the box, and of what differs only the difference travels.
    """
    options = [*_OPTIONS, f"--timeout={remote_folder.SILENT_FOR_S}"]
    options += [_ON_A_BOX if isinstance(destination, Remote) else _HERE]
    options += ["-0", "--files-from=-"] if with_list else []
    options += [f"--bwlimit={most_kib_s}"] if most_kib_s and not rsync.is_open else []
    options += ["--info=progress2", "--no-human-readable"] if rsync.tells_progress else []
    if bases and not rsync.is_open:
        # By content: a release that is built again has new times. Copied and not linked: with
        # --inplace a later change would be written through the link into the base.
        options += ["--checksum", *(f"--copy-dest={base}" for base in bases)]
    for place, go in ((source, remote_folder.GO), (destination, remote_folder.MAKE_AND_GO)):
        if isinstance(place, Remote):
            shell = place.ssh.rsync_shell(has_own=has_own_connection)
            options += ["-e", shell, "--rsync-path", place.command(go + _START)]
    words: list[str] = get_rsync_command(
        _folder(source),
        _folder(destination),
        source_ssh=_host(source),
        destination_ssh=_host(destination),
        options=[*options, "--"],  # because a path is never a flag
    )
    return words


def run_rsync(
    words: Sequence[str],
    names: bytes | None,
    keep_open: tuple[int, ...],
    on_look: Callable[[int], None],
) -> tuple[int, str]:
    """rsync's exit code and what it said on stderr. `on_look` gets the bytes that went so far."""
    with tempfile.TemporaryFile() as progress, tempfile.TemporaryFile() as listed:
        # Not a pipe, which `communicate` stops filling where it is asked a second time: rsync would
        # wait for the rest of a long list for ever.
        listed.write(names or b"")
        listed.seek(0)
        with subprocess.Popen(
            words,
            cwd="/",
            stdin=listed,
            stdout=progress,
            stderr=subprocess.PIPE,
            pass_fds=keep_open,
            env=child_environment(),
        ) as rsync:
            try:
                stderr = _words(rsync, lambda: on_look(_sent_bytes(progress)))
            except BaseException:
                rsync.terminate()  # not kill: it puts what it has into the partial folder first
                raise
        on_look(_sent_bytes(progress))
    return rsync.returncode, stderr.decode("utf-8", "replace").strip()


def raise_for_end(code: int, words: str, source: Path | Remote, destination: Path | Remote) -> None:
    """Raise what the end of rsync means, if it is not a good one."""
    if code in (0, _FILES_VANISHED):
        return
    place = next((p for p in (source, destination) if isinstance(p, Remote)), None)
    why = _LINK_CODES.get(code) or first_reason(words)
    if code < 0:
        why = _("ended by signal {n}", n=-code)
    if code == _INTERRUPTED:
        why = _("it was interrupted")
    sentence = _(
        "{source} -> {destination}: rsync failed (exit code {code}): {why}",
        source=source,
        destination=destination,
        code=code,
        why=why,
    )
    if place and remote_folder.NO_FOLDER in words:
        raise BoxcarError(_("{place}: no such folder to copy from", place=place))
    if remote_folder.is_no_room(words) or (code == _FILE_ERROR and _is_full(destination)):
        raise NoRoomError(remote_folder.no_room(sentence, destination))
    if place and code in _NO_RSYNC_CODES and _NO_RSYNC.search(words):
        raise NoRsyncThere
    if place and (code in _LINK_CODES or _LINK_WORDS.search(words)):
        raise remote_folder.link_error(place, words, why)
    if code in (*_LINK_CODES, _INTERRUPTED) or code < 0:
        raise TemporaryError(_("{what}. {then}", what=sentence, then=remote_folder.GOES_ON))
    raise BoxcarError(sentence)


def first_reason(words: str) -> str:
    """The first thing that went wrong, as one short line without rsync's own dressing. Before
    rsync's words may stand those of ssh (`** WARNING`) and a banner of the box.
    """
    lines = (plain(line).strip() for line in re.split(r"[\r\n]+", words))
    said = [line for line in lines if line and not _SUMMARY.match(line)]
    refusal = next((found for line in said if (found := _REFUSAL.match(line))), None)
    if found := next((found for line in said if (found := _AT_A_PATH.search(line))), None):
        return f"{found[1]}: {refusal[0] if refusal else found[2]}"
    said = [line for line in said if _DRESSING.match(line)] or said
    return _DRESSING.sub("", said[0])[:_MOST_REASON] if said else _("no output")


def _is_full(destination: Path | Remote) -> bool:
    """By df: what a receiver says of its full disk is often lost when rsync ends the link."""
    if not isinstance(destination, Remote):
        return False
    df = destination.ssh.run(["df", "-P", "-k", destination.path])
    free = _FREE.search(df.out.decode("utf-8", "replace"))
    return free is not None and int(free[1]) < _FULL_KIB


@functools.cache
def _ask_version(program: str) -> Rsync:
    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=VERSION_TIMEOUT_S,
            env=child_environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(
            _(
                "{program} does not work: {error}. Type: {install}",
                program=program,
                error=error,
                install=_INSTALL,
            )
        ) from error
    return read_version(done.stdout + done.stderr)


def _folder(place: Path | Remote) -> str:
    # rsync takes `name:rest` for a host; and 3.5 follows no link of another user than root and
    # its own, where whoever made a link of the results folder meant it.
    return "." if isinstance(place, Remote) else str(place.resolve())


def _host(place: Path | Remote) -> str | None:
    if not isinstance(place, Remote):
        return None
    user, at, host = place.ssh.alias.rpartition("@")
    return f"{user}{at}[{host}]" if ":" in host else place.ssh.alias


def _words(rsync: subprocess.Popen[bytes], on_wait: Callable[[], None]) -> bytes:
    while True:
        try:
            return rsync.communicate(timeout=_LOOK_EVERY_S)[1]
        except subprocess.TimeoutExpired:
            on_wait()


def _sent_bytes(progress: IO[bytes]) -> int:
    size_bytes = os.fstat(progress.fileno()).st_size
    tail = os.pread(progress.fileno(), _TAIL_BYTES, max(0, size_bytes - _TAIL_BYTES))
    counts = _SENT.findall(tail)
    return int(counts[-1].replace(b",", b"")) if counts else 0
