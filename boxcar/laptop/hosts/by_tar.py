"""Folders over ssh to and from a box that has no rsync: GNU tar there, files only.

What is complete (the same size and second) does not travel again; a file that came half begins
anew. Folders that hold no file do not travel, and links are left out.

A box is not trusted. Nothing is unpacked by tar here: each header is read by this module, and taken
only when it is a plain file that was asked for, of the size that the box had announced before and
that there was room for. It takes its name when it is whole.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from boxcar.laptop.hosts import remote_folder, ssh_errors
from boxcar.laptop.hosts.child_environment import child_environment
from boxcar.laptop.hosts.remote_folder import Remote
from boxcar.shared import paths
from boxcar.shared.disk import atomic, checked_copy
from boxcar.shared.errors import BoxcarError, NoRoomError, TemporaryError, reason_of
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# One command on a box with its streams, which ends when nothing moves any more.
#
# ssh ends by itself when the link is cut. A box that answers and does nothing, such as one whose
# network disk hangs, is given up here.


MARK = b"BOXCAR-STREAM\n"
# A script says so before its first byte: what a login shell greets with comes before it.
SAY_MARK = "echo BOXCAR-STREAM;"
_MOST_GREETING_BYTES = 64 * 1024
_MOST_WORDS_BYTES = 64 * 1024
_LOOK_EVERY_S = 0.2


class Silent(Exception):
    """Nothing moved for `remote.SILENT_FOR_S` seconds."""


class RemotePipe:
    """`with RemotePipe(...) as pipe`: read or write, then `end()`. Leaving it ends ssh.

    `names` is what the command reads on its stdin; with None, `write` is that. Raises Silent.
    """

    def __init__(
        self,
        place: Remote,
        script: str,
        names: bytes | None = None,
        on_wait: Callable[[], None] = lambda: None,
        *,
        most_kib_s: int = 0,
        has_own: bool = True,
    ) -> None:
        self._on_wait, self._looked_s = on_wait, time.monotonic()
        self._most_bytes_s = most_kib_s * 1024
        shell = shlex.split(place.ssh.rsync_shell(has_own=has_own))
        with contextlib.ExitStack() as files:
            self._stderr = files.enter_context(tempfile.TemporaryFile())
            # A file, because a pipe would have to be filled while the answer is read.
            typed = files.enter_context(tempfile.TemporaryFile())
            typed.write(names or b"")
            typed.seek(0)
            self._ssh = subprocess.Popen(
                [*shell, place.ssh.alias, place.command(script)],
                stdin=subprocess.PIPE if names is None else typed,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                bufsize=0,
                env=child_environment(),
            )
            self._files = files.pop_all()

    def __enter__(self) -> RemotePipe:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()
        self._close_stdin()
        assert self._ssh.stdout
        self._ssh.stdout.close()
        if self._ssh.poll() is None:
            self._ssh.terminate()
        self._ssh.wait()

    def skip_greeting(self) -> None:
        """Read up to the mark. Raises EOFError where the command ended before, or never said it."""
        seen = b""
        while not seen.endswith(MARK):
            byte = self.read(1)
            if not byte or len(seen) > _MOST_GREETING_BYTES:
                raise EOFError
            seen += byte

    def read(self, size_bytes: int) -> bytes:
        """What is there, `size_bytes` at most; b"" at the end."""
        assert self._ssh.stdout
        self._wait_for(self._ssh.stdout, is_read=True)
        data = os.read(self._ssh.stdout.fileno(), size_bytes)
        if self._most_bytes_s:
            time.sleep(len(data) / self._most_bytes_s)  # the box waits for who reads slowly
        return data

    def read_whole(self, size_bytes: int) -> bytes:
        """Raises EOFError where the stream ends before `size_bytes`, at most some MB."""
        parts = []
        while size_bytes:
            if not (part := self.read(size_bytes)):
                raise EOFError
            parts.append(part)
            size_bytes -= len(part)
        return b"".join(parts)

    def write(self, data: bytes) -> int:
        """Raises BrokenPipeError where the command has ended."""
        assert self._ssh.stdin
        os.set_blocking(self._ssh.stdin.fileno(), False)
        view = memoryview(data)
        while view:
            self._wait_for(self._ssh.stdin, is_read=False)
            view = view[os.write(self._ssh.stdin.fileno(), view) :]
        return len(data)

    def end(self) -> tuple[int, str]:
        """Wait for the command: its exit code and the end of what it said on stderr."""
        self._close_stdin()
        while self.read(65536):
            pass
        code = self._ssh.wait()
        size_bytes = os.fstat(self._stderr.fileno()).st_size
        words = os.pread(
            self._stderr.fileno(), _MOST_WORDS_BYTES, max(0, size_bytes - _MOST_WORDS_BYTES)
        )
        return code, words.decode("utf-8", "replace").strip()

    def _close_stdin(self) -> None:
        if self._ssh.stdin and not self._ssh.stdin.closed:
            self._ssh.stdin.close()

    def _wait_for(self, stream: IO[bytes], *, is_read: bool) -> None:
        until = time.monotonic() + remote_folder.SILENT_FOR_S
        reads, writes = ([stream], []) if is_read else ([], [stream])
        self._look()
        while not any(select.select(reads, writes, [], _LOOK_EVERY_S)):
            self._look()
            if time.monotonic() > until:
                raise Silent

    def _look(self) -> None:
        """Also while the stream never pauses."""
        if (now_s := time.monotonic()) - self._looked_s >= _LOOK_EVERY_S:
            self._looked_s = now_s
            self._on_wait()


_QUIET = "unset TAR_OPTIONS;"
# -ignore_readdir_race: a file that goes away meanwhile is none.
_FIND = 'find . -ignore_readdir_race -type f -printf "%s %T@ %P\\0"'
_LIST = f"{remote_folder.GO} {SAY_MARK} {_FIND}"
_LIST_IF_THERE = f'{SAY_MARK} [ -d "$d" ] || exit 0; {remote_folder.GO} {_FIND}'
# --hard-dereference: a file with two names is two files, not a file and a link.
_PACK = (
    f"{remote_folder.GO} {_QUIET} {SAY_MARK} "
    "exec tar -c -f - --format=gnu --hard-dereference --no-recursion --null -T -"
)
_UNPACK = (
    f"{remote_folder.MAKE_AND_GO} {_QUIET} exec tar -x -f - --no-same-owner --no-same-permissions"
)
_ENTRY = re.compile(rb"(\d{1,18}) (-?\d{1,11})(?:\.\d*)? (.+)", re.DOTALL)
_VANISHED = re.compile(
    r".*(?:Cannot stat: No such file or directory|File removed before we read it"
    r"|Exiting with failure status due to previous errors)"
)
_MOST_LIST_BYTES = 256 * 1024 * 1024
_MOST_NAME_BYTES = 8192
_MOST_END_BYTES = 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_BLOCK = tarfile.BLOCKSIZE
_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE)  # isreg() takes sparse files too


@dataclass(frozen=True)
class Entry:
    """A file as one side has it. The time in whole seconds, which is what tar carries."""

    size_bytes: int
    mtime_s: int


def fetch_by_tar(
    source: Remote,
    destination: Path,
    files: Sequence[str] | None,
    on_wait: Callable[[], None],
    *,
    most_kib_s: int = 0,
) -> None:
    """Raises as transport.fetch_folder does."""
    atomic.remove_unfinished(destination)
    there = _list(source, _LIST, on_wait)
    wanted = _wanted(source, destination, there, files)
    left = {name: e for name, e in wanted.items() if _here(destination / name) != e}
    if not left:
        return
    checked_copy.check_room(destination, [entry.size_bytes for entry in left.values()])
    names = b"".join(b"./" + os.fsencode(name) + b"\0" for name in left)
    with RemotePipe(source, _PACK, names, on_wait, most_kib_s=most_kib_s) as pipe:
        is_whole, code, words = _ended(source, pipe, lambda: _unpack(pipe, destination, left))
    _check(code, words, source, destination)
    if not is_whole:
        raise remote_folder.link_error(source, words, _("the stream ended early"))


def send_by_tar(
    source: Path,
    destination: Remote,
    on_bytes: Callable[[int], None],
    *,
    has_own_connection: bool = True,
    unchanged: Collection[str] = (),
) -> None:
    """`unchanged` are there already, whatever their times. Raises as transport.send_folder does."""
    here = _files_below(source)
    there = _list(destination, _LIST_IF_THERE, has_own=has_own_connection)
    is_there = {*unchanged, *(name for name, entry in here.items() if there.get(name) == entry)}
    left = [name for name in here if name not in is_there]
    done_bytes = sum(here[name].size_bytes for name in is_there if name in here)
    if not left:
        return
    with RemotePipe(destination, _UNPACK, has_own=has_own_connection) as pipe:
        writer = _Counting(pipe, done_bytes, on_bytes)
        is_whole, code, words = _ended(destination, pipe, lambda: _pack(writer, source, left))
    _check(code, words, source, destination)
    if not is_whole:
        raise remote_folder.link_error(destination, words, _("tar there ended early"))


def _ended(place: Remote, pipe: RemotePipe, move: Callable[[], None]) -> tuple[bool, int, str]:
    """Whether `move` came to its end, the exit code of the box's side, and what it said."""
    is_whole = True
    try:
        try:
            move()
        except (EOFError, BrokenPipeError):
            is_whole = False
        return is_whole, *pipe.end()
    except Silent:
        raise ssh_errors.LinkCut(
            place.ssh.alias,
            _(
                "{place}: no data for {seconds} s, although the box answers; its disk may hang",
                place=place,
                seconds=remote_folder.SILENT_FOR_S,
            ),
            remote_folder.GOES_ON,
        ) from None


def _list(
    place: Remote,
    script: str,
    on_wait: Callable[[], None] = lambda: None,
    *,
    has_own: bool = True,
) -> dict[str, Entry]:
    found: list[bytes] = []
    with RemotePipe(place, script, b"", on_wait, has_own=has_own) as pipe:
        is_whole, code, words = _ended(place, pipe, lambda: _read_list(place, pipe, found))
    _check(code, words, place, None)
    if not is_whole:
        raise TemporaryError(
            _(
                "{place}: the box did not list its files: {words}. Try again",
                place=place,
                words=words,
            )
        )
    return _parse(place, b"".join(found))


def _read_list(place: Remote, pipe: RemotePipe, found: list[bytes]) -> None:
    pipe.skip_greeting()
    size_bytes = 0
    while part := pipe.read(65536):
        found.append(part)
        size_bytes += len(part)
        if size_bytes > _MOST_LIST_BYTES:
            raise BoxcarError(_("{place}: its file list never ends", place=place))


def _parse(place: Remote, listed: bytes) -> dict[str, Entry]:
    entries = {}
    for line in listed.split(b"\0")[:-1]:
        fields = _ENTRY.fullmatch(line)
        if fields is None:
            raise BoxcarError(
                _(
                    "{place}: expected size, time and name, found {line!r}",
                    place=place,
                    line=line[:200],
                )
            )
        entries[os.fsdecode(fields[3])] = Entry(int(fields[1]), int(fields[2]))
    return dict(sorted(entries.items()))


def _wanted(
    source: Remote, destination: Path, there: dict[str, Entry], files: Sequence[str] | None
) -> dict[str, Entry]:
    missing = [name for name in files or () if name not in there]
    if missing:
        raise BoxcarError(
            _("{source}: no such file: {missing}", source=source, missing=", ".join(missing[:5]))
        )
    wanted = there if files is None else {name: there[name] for name in files}
    for name in wanted:
        paths.inside(destination, name)
        if paths.has_symlink(destination, name):
            raise BoxcarError(
                _("{path}: is a symbolic link, or is below one", path=destination / name)
            )
    return wanted


def _here(path: Path) -> Entry | None:
    with suppress(FileNotFoundError, NotADirectoryError):
        status = path.stat()
        return Entry(status.st_size, int(status.st_mtime))
    return None


def _files_below(folder: Path) -> dict[str, Entry]:
    return {
        path.relative_to(folder).as_posix(): Entry(path.stat().st_size, int(path.stat().st_mtime))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


# --- from the box


def _unpack(pipe: RemotePipe, destination: Path, left: dict[str, Entry]) -> None:
    """Raises EOFError where the stream ends before its end, BoxcarError for what was not asked."""
    pipe.skip_greeting()
    waiting = dict(left)
    long_name = None
    while (block := pipe.read_whole(_BLOCK)) != bytes(_BLOCK):
        header = _header(block)
        if header.type == tarfile.GNUTYPE_LONGNAME and header.size <= _MOST_NAME_BYTES:
            long_name = os.fsdecode(pipe.read_whole(_padded(header.size)).split(b"\0")[0])
            continue
        name = (long_name or header.name).removeprefix("./")
        long_name = None
        entry = waiting.pop(name, None)
        if header.type not in _PLAIN or entry is None:
            raise BoxcarError(
                _(
                    "the box sent {name!r} (type {type!r}), which was not requested. It was not "
                    "written",
                    name=name,
                    type=header.type,
                )
            )
        if header.size != entry.size_bytes:
            raise TemporaryError(
                _(
                    "{name!r}: received {size} bytes, but {size_bytes} were announced: the file "
                    "changed meanwhile. It was not written; run the same command again",
                    name=name,
                    size=header.size,
                    size_bytes=entry.size_bytes,
                )
            )
        _write(pipe, destination / name, entry)
    _drain(pipe)


def _header(block: bytes) -> tarfile.TarInfo:
    try:
        header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError) as error:
        raise BoxcarError(
            _("what the box sent is not a tar archive: {error}", error=error)
        ) from error
    if header.size < 0:
        raise BoxcarError(
            _("the box sent {header!r} with the size {size}", header=header.name, size=header.size)
        )
    return header


def _write(pipe: RemotePipe, target: Path, entry: Entry) -> None:
    temporary = atomic.temporary_name(target)
    try:
        atomic.make_folder(target.parent)
        with temporary.open("xb") as file:
            left_bytes = entry.size_bytes
            while left_bytes:
                part = pipe.read_whole(min(left_bytes, _CHUNK_BYTES))
                file.write(part)
                left_bytes -= len(part)
        os.utime(temporary, (entry.mtime_s, entry.mtime_s))
        temporary.replace(target)
    except OSError as error:
        if remote_folder.is_no_room(str(error.strerror)):
            raise NoRoomError(
                remote_folder.no_room(
                    _("{head}: {text}", head=target, text=reason_of(error)), target
                )
            ) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)
    pipe.read_whole(_padded(entry.size_bytes) - entry.size_bytes)


def _drain(pipe: RemotePipe) -> None:
    size_bytes = 0
    while part := pipe.read(65536):
        size_bytes += len(part)
        if part.strip(b"\0") or size_bytes > _MOST_END_BYTES:
            raise BoxcarError(_("the box sent data after the end of its tar archive"))


def _padded(size_bytes: int) -> int:
    return -(-size_bytes // _BLOCK) * _BLOCK


# --- to the box


class _Counting:
    """What tarfile writes to."""

    def __init__(self, pipe: RemotePipe, done_bytes: int, on_bytes: Callable[[int], None]) -> None:
        self._pipe, self._done_bytes, self._on_bytes = pipe, done_bytes, on_bytes

    def write(self, data: bytes) -> int:
        size_bytes = self._pipe.write(data)
        self._done_bytes += size_bytes
        self._on_bytes(self._done_bytes)
        return size_bytes


def _pack(writer: _Counting, source: Path, names: Sequence[str]) -> None:
    stream = cast(IO[bytes], writer)
    with tarfile.open(
        fileobj=stream,
        mode="w|",
        format=tarfile.GNU_FORMAT,
        encoding="utf-8",
        errors="surrogateescape",
        bufsize=_CHUNK_BYTES,
    ) as tar:
        for name in names:
            with (source / name).open("rb") as file:
                status = os.fstat(file.fileno())
                header = tarfile.TarInfo(f"./{name}")
                header.size, header.mtime = status.st_size, int(status.st_mtime)
                header.mode = status.st_mode & 0o777
                tar.addfile(header, file)


def _check(code: int, words: str, source: Path | Remote, destination: Path | Remote | None) -> None:
    """Raise what the end of the box's side means, if it is not a good one."""
    if code == 0:
        return
    place = source if isinstance(source, Remote) else cast(Remote, destination)
    sentence = f"{source}{f' -> {destination}' if destination else ''}: {words[-2000:]}"
    if code == ssh_errors.SSH_FAILED:
        raise remote_folder.link_error(place, words, sentence)
    if remote_folder.NO_FOLDER in words:
        raise BoxcarError(_("{place}: no such folder to copy from", place=place))
    if remote_folder.is_no_room(words):
        raise NoRoomError(remote_folder.no_room(sentence, place))
    if words and all(_VANISHED.fullmatch(line) for line in words.splitlines()):
        return
    raise BoxcarError(_("{sentence} (exit code {code} on the box)", sentence=sentence, code=code))
