"""Folders over a real ssh, to and from a box: by rsync, and by tar where the box has none."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hosts import Hosts
from odd_files import NAMES, fill, found
from rented import on_the_wire_bytes
from waiting import until

from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts import connection, folders, remote_folder
from boxcar.laptop.hosts.connection import Ssh
from boxcar.laptop.hosts.remote_folder import Remote
from boxcar.laptop.hosts.ssh_errors import KeyRefused
from boxcar.shared.errors import BoxcarError, NoRoomError, TemporaryError

BOX = "box-a"
ODD = "-a b;'c' \"d\" $(touch x) `e` \\n \\\\ ünï * [fg] {h,i} ~ #j & k!l | m\n\n"
BIG_BYTES = 1_200_000
BOTH = (True, False)


def _place(hosts: Hosts, path: str, *, has_rsync: bool, box: str = BOX) -> Remote:
    return Remote(Ssh(box, Home(hosts.folder), print), path, has_rsync=has_rsync)


def _move(hosts: Hosts, here: Mapping[str, Path], box: str, *, has_rsync: bool) -> None:
    """Send our folder to box-a, or fetch that of another box."""
    there = _place(hosts, f"{hosts.data_dir}/x", has_rsync=has_rsync, box=box)
    if box == "box-a":
        folders.send_folder(here[box], there)
    else:
        folders.fetch_folder(there, here[box])


@pytest.mark.parametrize("shell", ["/bin/bash", "/usr/bin/fish", "banner"])
def test_every_name_travels_both_ways(hosts: Hosts, tmp_path: Path, shell: str) -> None:
    if shell.startswith("/") and not Path(shell).exists():
        pytest.skip(f"{shell} is not installed")
    hosts.set_up(BOX, shell=shell)
    fill(tmp_path / "-so urce:x")
    for has_rsync in BOTH:
        here = tmp_path / f"{has_rsync}"
        there = _place(hosts, f"{hosts.data_dir}/{has_rsync}/{ODD}", has_rsync=has_rsync)
        folders.send_folder(tmp_path / "-so urce:x", there)
        assert found(hosts.seen(BOX, there.path)) == {name: name for name in NAMES}
        above = hosts.seen(BOX, hosts.data_dir) / f"{has_rsync}"
        assert [path.name for path in above.iterdir()] == [ODD]
        folders.fetch_folder(there, here / "all")
        assert found(here / "all") == {name: name for name in NAMES}
        folders.fetch_folder(there, here / "some", files=NAMES[3:9])
        assert found(here / "some") == {name: name for name in NAMES[3:9]}


def test_links_and_pipes_are_left_out(hosts: Hosts, tmp_path: Path) -> None:
    folder = hosts.seen(BOX, hosts.data_dir) / "x"
    fill(folder, ("file", "twice"))
    (folder / "again").hardlink_to(folder / "twice")
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "folder").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    for has_rsync in BOTH:
        here = tmp_path / f"{has_rsync}"
        folders.fetch_folder(_place(hosts, f"{hosts.data_dir}/x", has_rsync=has_rsync), here)
        assert found(here) == {"file": "file", "twice": "twice", "again": "twice"}
        assert not [path for path in here.rglob("*") if path.is_symlink()]


@pytest.mark.parametrize("has_rsync", BOTH, ids=["rsync", "tar"])
def test_a_cut_link_ends_and_the_same_call_goes_on(
    hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_rsync: bool
) -> None:
    monkeypatch.setattr(remote_folder, "SILENT_FOR_S", 2)
    monkeypatch.setattr(connection, "ALIVE_EVERY_S", 1)
    monkeypatch.setattr(connection, "ALIVE_MISSED", 1)
    monkeypatch.setattr(folders, "TRIES", 0)  # as after the last of them
    here = {"box-a": tmp_path / "push", "box-b": tmp_path / "pull"}

    def far(box: str) -> Path:
        return hosts.seen(box, hosts.data_dir) / "x"

    def is_cut(box: str) -> bool:
        whole = {"box-a": far(box), "box-b": here[box]}[box] / "a"
        with ThreadPoolExecutor(1) as pool:
            moving = pool.submit(_move, hosts, here, box, has_rsync=has_rsync)
            until(lambda: whole.exists() and whole.stat().st_size == BIG_BYTES)
            time.sleep(0.3)
            hosts.cut(box)
            with pytest.raises(TemporaryError, match="continues where this one stopped"):
                moving.result()
        return not whole.with_name("c").exists()

    contents = {name: os.urandom(BIG_BYTES) for name in ("a", "b", "c")}
    for folder in (here["box-a"], far("box-b")):
        folder.mkdir()
        for name, content in contents.items():
            (folder / name).write_bytes(content)
    for box in here:
        hosts.slow(box, "16mbit")
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(is_cut, here)) == [True, True]
    for box, folder in here.items():
        hosts.reboot(box)  # or what the old connection still holds would be counted below
        hosts.heal(box)
        before_bytes = on_the_wire_bytes(hosts, box)
        _move(hosts, here, box, has_rsync=has_rsync)
        sent_bytes = on_the_wire_bytes(hosts, box) - before_bytes
        for end in (folder, far(box)):
            assert {path.name: path.read_bytes() for path in end.iterdir()} == contents
        # a is not sent again, and by rsync only the rest of b.
        assert sent_bytes < (2 * BIG_BYTES if has_rsync else 2.5 * BIG_BYTES)


@pytest.mark.parametrize("has_rsync", BOTH, ids=["rsync", "tar"])
def test_a_line_that_breaks_is_gone_on_with_by_itself(
    hosts: Hosts,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    has_rsync: bool,
) -> None:
    monkeypatch.setattr(folders, "_told", set())
    contents = {name: os.urandom(BIG_BYTES) for name in ("a", "b", "c")}
    here = {"box-a": tmp_path / "push", "box-b": tmp_path / "pull"}
    far = {box: hosts.seen(box, hosts.data_dir) / "x" for box in here}
    for folder in (here["box-a"], far["box-b"]):
        folder.mkdir()
        for name, content in contents.items():
            (folder / name).write_bytes(content)

    def move_over_a_cut(box: str) -> int:
        hosts.slow(box, "16mbit")
        before_bytes = on_the_wire_bytes(hosts, box)
        whole = (far[box] if box == "box-a" else here[box]) / "a"
        with ThreadPoolExecutor(1) as pool:
            moving = pool.submit(_move, hosts, here, box, has_rsync=has_rsync)
            until(lambda: whole.exists() and whole.stat().st_size == BIG_BYTES)
            time.sleep(0.3)
            _end_connections(hosts, box)
            moving.result()
        return on_the_wire_bytes(hosts, box) - before_bytes

    with ThreadPoolExecutor(2) as pool:
        sent_bytes = list(pool.map(move_over_a_cut, here))
    for box, folder in here.items():
        for end in (folder, far[box]):
            assert {path.name: path.read_bytes() for path in end.iterdir()} == contents
    # a is not sent again, and by rsync only the rest of b.
    assert max(sent_bytes) < (3.5 if has_rsync else 4.5) * BIG_BYTES
    said = capsys.readouterr().out
    assert said.count("the connection was lost; the copy continues") == 2


def _end_connections(hosts: Hosts, box: str) -> None:
    """As a router does that forgets them; who answers there goes on to answer."""
    pids = "for p in /proc/[0-9]*; do grep -q ^sshd:.root $p/cmdline && echo ${p#/proc/}; done"
    hosts.run(box, ["sh", "-c", f"kill -9 $({pids})"])


@pytest.mark.parametrize("options", ["size=64k", "nr_inodes=5"])
def test_a_full_box_is_no_room_and_is_named(hosts: Hosts, tmp_path: Path, options: str) -> None:
    for number in range(8):
        (tmp_path / "source").mkdir(exist_ok=True)
        (tmp_path / "source" / f"{number}").write_bytes(b"x" * 20_000)
    for has_rsync in BOTH:
        hosts.limit(BOX, options)
        there = _place(hosts, f"{hosts.data_dir}/x", has_rsync=has_rsync)
        with pytest.raises(NoRoomError, match=f"Free some space on {BOX}"):
            folders.send_folder(tmp_path / "source", there)
        hosts.limit(BOX, "size=1g,nr_inodes=1000")
        folders.send_folder(tmp_path / "source", there)
        assert len(found(hosts.seen(BOX, there.path))) == 8
        shutil.rmtree(hosts.seen(BOX, there.path))


def test_what_is_not_there_is_said(hosts: Hosts, tmp_path: Path) -> None:
    fill(hosts.seen(BOX, hosts.data_dir) / "x", ("x",))
    for has_rsync in BOTH:
        there = _place(hosts, f"{hosts.data_dir}/nothing", has_rsync=has_rsync)
        with pytest.raises(BoxcarError, match=rf"{BOX}:.*no such folder to copy") as raised:
            folders.fetch_folder(there, tmp_path / "here")
        assert type(raised.value) is BoxcarError
        there = _place(hosts, f"{hosts.data_dir}/x", has_rsync=has_rsync)
        with pytest.raises(BoxcarError, match=r"(?s)best\.pth"):
            folders.fetch_folder(there, tmp_path / "here", files=["x", "best.pth"])


def test_a_wrong_key_is_said_as_what_it_is(hosts: Hosts, tmp_path: Path) -> None:
    hosts.seen(BOX, "/tmp/box/etc/authorized_keys").write_text("")
    fill(tmp_path / "source", ("x",))
    for has_rsync in BOTH:
        there = _place(hosts, f"{hosts.data_dir}/x", has_rsync=has_rsync)
        with pytest.raises(KeyRefused):
            folders.send_folder(tmp_path / "source", there)


def test_a_box_that_lost_its_rsync_is_served_by_tar_and_told_once(
    hosts: Hosts,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hosts.run(BOX, ["sh", "-c", 'mount --bind /dev/null "$(command -v rsync)"'])
    monkeypatch.setattr(folders, "_told", set())
    there = _place(hosts, f"{hosts.data_dir}/x", has_rsync=True)
    fill(tmp_path / "source", ("x",))
    folders.send_folder(tmp_path / "source", there)
    folders.fetch_folder(there, tmp_path / "back")
    assert found(tmp_path / "back") == {"x": "x"}
    assert capsys.readouterr().out.count("by tar over ssh") == 1


def test_a_send_tells_how_far_it_is(hosts: Hosts, tmp_path: Path) -> None:
    size_bytes = 3_000_000
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "big").write_bytes(os.urandom(size_bytes))
    hosts.slow(BOX, "16mbit")
    for has_rsync in BOTH:
        told: list[int] = []
        there = _place(hosts, f"{hosts.data_dir}/{has_rsync}", has_rsync=has_rsync)
        folders.send_folder(tmp_path / "source", there, on_bytes=told.append)
        assert any(0 < sent_bytes < size_bytes for sent_bytes in told)
        assert told == sorted(told)
        assert told[-1] >= size_bytes


def test_what_a_base_on_the_box_has_is_not_sent_and_the_base_stays_as_it_is(
    hosts: Hosts, tmp_path: Path
) -> None:
    contents = {name: os.urandom(BIG_BYTES) for name in ("a", "b", "damaged")}
    sent, base = tmp_path / "source", hosts.seen(BOX, hosts.data_dir) / "base"
    for folder in (sent, base):
        folder.mkdir()
        for name, content in contents.items():
            (folder / name).write_bytes(content)
    with (base / "damaged").open("r+b") as file:
        file.write(b"edited on the box")
    was = {path.name: path.read_bytes() for path in base.iterdir()}
    os.utime(sent / "a", (1, 1))  # built again
    with (sent / "b").open("ab") as file:
        file.write(b"a new line")
    before_bytes = on_the_wire_bytes(hosts, BOX)
    there = _place(hosts, f"{hosts.data_dir}/new", has_rsync=True)
    folders.send_folder(sent, there, bases=["../base", "../nowhere"], has_own_connection=False)
    assert on_the_wire_bytes(hosts, BOX) - before_bytes < BIG_BYTES / 4
    arrived = hosts.seen(BOX, there.path)
    assert {path.name: path.read_bytes() for path in arrived.iterdir()} == {
        path.name: path.read_bytes() for path in sent.iterdir()
    }
    assert {path.name: path.read_bytes() for path in base.iterdir()} == was


def test_code_is_compressed_on_its_way_and_results_are_not(hosts: Hosts, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "x.py").write_text("value = 1\n" * (BIG_BYTES // 10))
    sent_bytes = []
    for has_own in BOTH:
        there = _place(hosts, f"{hosts.data_dir}/{has_own}", has_rsync=True)
        before_bytes = on_the_wire_bytes(hosts, BOX)
        folders.send_folder(tmp_path / "source", there, has_own_connection=has_own)
        sent_bytes.append(on_the_wire_bytes(hosts, BOX) - before_bytes)
    assert sent_bytes[0] > BIG_BYTES > 4 * sent_bytes[1]


def test_a_box_that_lets_in_one_session_a_connection_is_sent_to_by_another_one(
    hosts: Hosts, tmp_path: Path
) -> None:
    hosts.start_sshd(BOX, MaxSessions=1)
    fill(tmp_path / "source", ("x",))
    there = _place(hosts, f"{hosts.data_dir}/x", has_rsync=True)
    begun = hosts.seen(BOX, hosts.data_dir) / "begun"
    words = ["sh", "-c", f"touch {hosts.data_dir}/begun; sleep 60"]
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(there.ssh.run, words)
        until(begun.exists)
        folders.send_folder(tmp_path / "source", there, has_own_connection=False)
        there.ssh.close()
        with pytest.raises(TemporaryError):
            asking.result()
    assert found(hosts.seen(BOX, there.path)) == {"x": "x"}


@pytest.mark.parametrize("has_rsync", BOTH)
def test_all_copies_of_a_verb_share_one_connection_beside_that_of_questions(
    hosts: Hosts, tmp_path: Path, has_rsync: bool
) -> None:
    fill(hosts.seen(BOX, hosts.data_dir) / "there", ("x", "y"))
    place = _place(hosts, f"{hosts.data_dir}/there", has_rsync=has_rsync)
    place.ssh.run(["true"])
    log = hosts.seen(BOX, "/tmp/box/etc/sshd.log")
    before = log.read_text().count("Accepted publickey")
    with ThreadPoolExecutor(2) as pool:
        for name in ("x", "y"):
            pool.submit(folders.fetch_folder, place, tmp_path / name, files=[name])
    folders.fetch_folder(place, tmp_path / "again")
    place.ssh.run(["true"])
    assert [found(tmp_path / name) for name in ("x", "y")] == [{"x": "x"}, {"y": "y"}]
    assert log.read_text().count("Accepted publickey") == before + 1


def test_copies_side_by_side_come_where_a_connection_allows_one_session(
    hosts: Hosts, tmp_path: Path
) -> None:
    hosts.start_sshd(BOX, MaxSessions=1)
    fill(hosts.seen(BOX, hosts.data_dir) / "there", ("x", "y", "z"))
    place = _place(hosts, f"{hosts.data_dir}/there", has_rsync=True)
    with ThreadPoolExecutor(3) as pool:
        copies = [
            pool.submit(folders.fetch_folder, place, tmp_path / name, files=[name], most_kib_s=1)
            for name in "xyz"
        ]
        for copy in copies:
            copy.result()
    assert [found(tmp_path / name) for name in "xyz"] == [{name: name} for name in "xyz"]
