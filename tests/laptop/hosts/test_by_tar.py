"""Real tar on the box's side, and hand-made streams of a box that lies. The wire is left out."""

from __future__ import annotations

import io
import itertools
import os
import shlex
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_ssh import FakeSsh

from boxcar.laptop.hosts import by_tar, folders, remote_folder
from boxcar.laptop.hosts.by_tar import MARK
from boxcar.laptop.hosts.remote_folder import Remote
from boxcar.shared.errors import BoxcarError, DamagedError, TemporaryError

AT_S = 1_700_000_000


def _place(folder: Path, path: Path | str) -> Remote:
    return Remote(FakeSsh(folder), str(path), has_rsync=False)  # type: ignore[arg-type]


def _member(name: str, data: bytes = b"evil", kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mtime = kind, len(data), AT_S
    if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
        info.size, info.linkname = 0, "/etc/passwd"
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(data))
    return stream.getvalue().rstrip(b"\0").ljust(512 + -(-info.size // 512) * 512, b"\0")


def _liar(folder: Path, listed: bytes, stream: bytes, code: int = 0) -> Remote:
    """A box that answers a listing by one text and everything else by another."""
    (folder / "listed").write_bytes(MARK + listed)
    (folder / "stream").write_bytes(MARK + stream)
    at = shlex.quote(str(folder))
    text = f'case "$*" in *find*) cat {at}/listed;; *) cat {at}/stream; exit {code};; esac'
    ssh = FakeSsh(folder, script=text)
    return Remote(ssh, "/x", has_rsync=False)  # type: ignore[arg-type]


def _line(name: str, size_bytes: int = 4) -> bytes:
    return f"{size_bytes} {AT_S}.0000000000 {name}\0".encode()


END = bytes(1024)
GOOD = _member("./good", b"good")


@pytest.mark.parametrize(
    "stream",
    [
        _member("../out") + END,
        _member("./../out") + END,
        _member("/tmp/boxcar-evil") + END,
        _member("./other") + END,
        _member("./empty", kind=tarfile.SYMTYPE) + END,
        _member("./empty", kind=tarfile.LNKTYPE) + END,
        _member("./empty", b"", tarfile.CHRTYPE) + END,
        _member("./empty", b"", tarfile.FIFOTYPE) + END,
        _member("./empty", b"", tarfile.DIRTYPE) + END,
        _member("./good", b"x" * 5) + END,
        _member("./good", b"x" * 100_000) + END,
        _member("path=/tmp/boxcar-evil", kind=tarfile.XHDTYPE) + END,
        _member("long", b"n" * 100_000, tarfile.GNUTYPE_LONGNAME) + END,
        _member("./empty", b"", tarfile.GNUTYPE_SPARSE) + END,
        GOOD + GOOD + END,
        GOOD + END + b"more" + END,
        b"no tar at all".ljust(1024, b"."),
        GOOD[:700],
        b"",
    ],
)
def test_what_was_not_asked_for_is_refused_and_nothing_of_it_is_left(
    tmp_path: Path, stream: bytes
) -> None:
    there = _liar(tmp_path, _line("good") + _line("empty", 0), stream)
    with pytest.raises(BoxcarError):
        folders.fetch_folder(there, tmp_path / "a" / "here")
    left = {path.name: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()}
    assert left in ({}, {"good": b"good"})
    assert not Path("/tmp/boxcar-evil").exists()


def test_what_was_asked_for_is_taken_behind_a_greeting(tmp_path: Path) -> None:
    there = _liar(tmp_path, _line("good"), GOOD + END)
    (tmp_path / "stream").write_bytes(b"Welcome!\n" + (tmp_path / "stream").read_bytes())
    folders.fetch_folder(there, tmp_path / "here")
    assert (tmp_path / "here" / "good").read_bytes() == b"good"
    assert int((tmp_path / "here" / "good").stat().st_mtime) == AT_S


@pytest.mark.parametrize("name", ["../out", "/tmp/boxcar-evil", "a/../../out", "", "a//b", "."])
def test_a_list_with_names_that_leave_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    there = _liar(tmp_path, _line(name), _member(f"./{name}") + END)
    with pytest.raises(BoxcarError):
        folders.fetch_folder(there, tmp_path / "a" / "here")
    assert not [path for path in (tmp_path / "a").rglob("*") if path.is_file()]


def test_a_link_in_the_destination_is_not_written_through(tmp_path: Path) -> None:
    there = _liar(tmp_path, _line("link/good"), _member("./link/good") + END)
    (tmp_path / "outside").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(BoxcarError, match="symbolic link"):
        folders.fetch_folder(there, tmp_path / "here")
    assert not list((tmp_path / "outside").iterdir())


def test_more_than_there_is_room_for_is_not_asked_for(tmp_path: Path) -> None:
    there = _liar(tmp_path, _line("good", 10**17), b"")
    with pytest.raises(BoxcarError, match="are needed"):
        folders.fetch_folder(there, tmp_path / "here")


def test_a_list_that_is_none_is_refused(tmp_path: Path) -> None:
    for listed in (b"x\0", b"1 2\0", b"-1 2 x\0", b"1e9 2 x\0"):
        with pytest.raises(BoxcarError, match="expected size, time and name"):
            folders.fetch_folder(_liar(tmp_path, listed, b""), tmp_path / "here")


def test_a_stream_that_was_cut_is_temporary_and_keeps_what_was_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "TRIES", 0)  # it would say the same once more
    stream = GOOD + _member("./second", b"x" * 2000)[:1000]
    there = _liar(tmp_path, _line("good") + _line("second", 2000), stream, code=255)
    with pytest.raises(TemporaryError, match="continues where this one stopped"):
        folders.fetch_folder(there, tmp_path / "here")
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["good"]


def test_a_box_that_answers_and_sends_nothing_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_folder, "SILENT_FOR_S", 0.3)
    waited: list[int] = []
    ssh = FakeSsh(tmp_path, script="exec sleep 60")
    there = Remote(ssh, "/x", has_rsync=False)  # type: ignore[arg-type]
    with pytest.raises(TemporaryError, match="no data for"):
        folders.fetch_folder(there, tmp_path / "here", on_wait=lambda: waited.append(1))
    assert waited
    (tmp_path / "here" / "x").write_text("x")
    with pytest.raises(TemporaryError, match="no data for"):
        folders.send_folder(tmp_path / "here", there)


def test_who_looks_on_is_called_also_while_the_stream_never_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(by_tar.time, "monotonic", lambda: float(next(seconds)))
    there = _liar(tmp_path, _line("good"), GOOD + END)
    looks: list[int] = []
    folders.fetch_folder(there, tmp_path / "here", on_wait=lambda: looks.append(1))
    assert len(looks) > 5


def _counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[list[str]]:
    """The names that travel, call by call."""
    seen: list[list[str]] = []
    real: Callable[..., None] = getattr(by_tar, name)

    def counting(one: object, two: object, names: object) -> None:
        seen.append(list(names))  # type: ignore[call-overload]
        real(one, two, names)

    monkeypatch.setattr(by_tar, name, counting)
    return seen


@pytest.mark.parametrize("way", ["send", "fetch"])
def test_what_is_complete_does_not_travel_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    for name in ("changed", "half", "same"):
        (source / name).write_text(name)
    seen = _counted(monkeypatch, "_pack" if way == "send" else "_unpack")

    def move() -> None:
        if way == "send":
            folders.send_folder(source, _place(tmp_path, target))
        else:
            folders.fetch_folder(_place(tmp_path, source), target)

    move()
    move()
    (target / "half").write_text("ha")
    os.utime(source / "changed", (AT_S, AT_S))
    move()
    assert seen == [["changed", "half", "same"], ["changed", "half"]]
    assert (target / "half").read_text() == "half"


def test_files_of_many_sizes_and_long_names_are_the_same_after_both_ways(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for size_bytes in (0, 1, 511, 512, 513, 10_240, 1_048_576, 3_000_001):
        file = source / ("d" * 90) / ("n" * 200 + f"{size_bytes}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(size_bytes))
    folders.send_folder(source, _place(tmp_path, tmp_path / "box"))
    folders.fetch_folder(_place(tmp_path, tmp_path / "box"), tmp_path / "back")
    for file in source.rglob("n*"):
        back = tmp_path / "back" / file.relative_to(source)
        assert back.read_bytes() == file.read_bytes()
    assert len(list((tmp_path / "back").rglob("n*"))) == 8


def test_a_name_that_leaves_the_folder_is_never_asked_for(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "secret").write_text("secret")
    with pytest.raises((BoxcarError, DamagedError)):
        folders.fetch_folder(
            _place(tmp_path, tmp_path / "source"), tmp_path / "here", files=["../secret"]
        )
