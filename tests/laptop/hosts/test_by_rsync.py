from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from fake_ssh import FakeSsh

from boxcar.laptop.hosts import by_rsync, folders, remote_folder
from boxcar.laptop.hosts.by_rsync import NoRsyncThere, Rsync
from boxcar.laptop.hosts.remote_folder import Remote
from boxcar.laptop.hosts.ssh_errors import HostKeyChanged, KeyRefused, LinkCut, Unreachable
from boxcar.shared.errors import BoxcarError, InputError, NoRoomError

NEW = Rsync((3, 4), is_open=False)
OPEN = Rsync((0, 0), is_open=True)
PUSHED = f'{remote_folder.MAKE_AND_GO}rsync "$@"'
PULLED = f'{remote_folder.GO}rsync "$@"'
DF = "Filesystem 1024-blocks Used Available Capacity Mounted on\nnone 64 {} {} 90% /x\n"
# Takes what macOS' takes, and refuses what it refuses.
OPENRSYNC = """#!/bin/sh
for word; do
    case $word in
    --version) echo 'openrsync: protocol version 29'; echo 'rsync version 2.6.9 compatible'; exit;;
    --info=*|--no-human-readable|--protect-args|-s|--append-verify) echo "$word?" >&2; exit 1;;
    esac
done
exec {real} "$@"
"""


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("rsync  version 3.5.0  protocol version 32\nCopyright", Rsync((3, 5), False)),
        ("rsync  version v3.2.7  protocol version 31\n", Rsync((3, 2), False)),
        ("rsync  version 2.6.9  protocol version 29\n", Rsync((2, 6), False)),
        ("openrsync: protocol version 29\nrsync version 2.6.9 compatible\n", OPEN),
        ("?", Rsync((0, 0), False)),
    ],
)
def test_the_version_says_which_rsync_it_is(said: str, expected: Rsync) -> None:
    assert by_rsync.read_version(said) == expected


def _program(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    folder.mkdir()
    (folder / "rsync").write_text(text)
    (folder / "rsync").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_an_rsync_from_before_3_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "#!/bin/sh\necho 'rsync  version 2.6.9  protocol version 29'\n"
    _program(tmp_path / "bin", monkeypatch, text)
    with pytest.raises(InputError, match=r"rsync 2\.6; 3\.0.*brew install rsync"):
        folders.check_rsync(print)


def test_openrsync_works_without_what_it_lacks_and_is_told_about_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.which("rsync")
    if real is None:
        pytest.skip("rsync is not installed")
    _program(tmp_path / "bin", monkeypatch, OPENRSYNC.replace("{real}", real))
    place = Remote(FakeSsh(tmp_path), f"{tmp_path}/a b")  # type: ignore[arg-type]
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "x").write_text("x")
    folders.send_folder(tmp_path / "source", place)
    folders.fetch_folder(place, tmp_path / "back", files=["x"])
    folders.fetch_folder(tmp_path / "source", tmp_path / "copy")
    assert (tmp_path / "back" / "x").read_text() == "x"
    told: list[str] = []
    folders.check_rsync(told.append)
    assert ["brew install rsync" in text for text in told] == [True]


def test_no_path_on_a_box_and_no_delete_stands_in_rsyncs_words(tmp_path: Path) -> None:
    place = Remote(FakeSsh(tmp_path), "/secret place")  # type: ignore[arg-type]
    words = by_rsync.rsync_command(NEW, tmp_path, place, with_list=False)
    assert words[words.index("--") + 1 :] == [f"{tmp_path}/", "box-z:."]
    assert not [word for word in words if "secret place" in word or "delete" in word]


def test_the_words_of_rsync_are_these(tmp_path: Path) -> None:
    place = Remote(FakeSsh(tmp_path), "/x")  # type: ignore[arg-type]
    words = by_rsync.rsync_command(NEW, tmp_path, place, with_list=False, bases=["../base"])
    assert words[:-2] == [
        *("rsync", "--recursive", "--times", "--timeout=60", "--inplace"),
        *("--info=progress2", "--no-human-readable", "--checksum", "--copy-dest=../base"),
        *("-e", place.ssh.rsync_shell(), "--rsync-path", place.command(PUSHED), "--"),
    ]
    words = by_rsync.rsync_command(NEW, place, tmp_path, with_list=True, most_kib_s=9)
    assert words == [
        *("rsync", "--recursive", "--times", "--timeout=60", "--partial-dir=.rsync-partial"),
        *("-0", "--files-from=-", "--bwlimit=9", "--info=progress2", "--no-human-readable"),
        *("-e", place.ssh.rsync_shell(), "--rsync-path", place.command(PULLED)),
        *("--", "box-z:./", str(tmp_path)),
    ]


def test_openrsync_sends_all(tmp_path: Path) -> None:
    place = Remote(FakeSsh(tmp_path), "/x")  # type: ignore[arg-type]
    with_base = by_rsync.rsync_command(OPEN, tmp_path, place, with_list=False, bases=["../base"])
    assert with_base == by_rsync.rsync_command(OPEN, tmp_path, place, with_list=False)


@pytest.mark.parametrize(
    ("alias", "host"), [("u@10.0.0.1", "u@10.0.0.1"), ("::1", "[::1]"), ("u@a:b", "u@[a:b]")]
)
def test_a_colon_in_an_alias_is_no_end_of_it(tmp_path: Path, alias: str, host: str) -> None:
    ssh = FakeSsh(tmp_path)
    ssh.alias = alias
    words = by_rsync.rsync_command(NEW, tmp_path, Remote(ssh, "/x"), with_list=False)  # type: ignore[arg-type]
    assert words[-1].startswith(f"{host}:.")


@pytest.mark.parametrize(
    ("code", "words", "error"),
    [
        (12, "box: Permission denied (publickey).", KeyRefused),
        (255, "REMOTE HOST IDENTIFICATION HAS CHANGED", HostKeyChanged),
        (255, "ssh: connect to host x port 22: Connection refused", Unreachable),
        (255, "Timeout, server box-z not responding.", LinkCut),
        (12, "client_loop: send disconnect: Broken pipe", LinkCut),
        (30, "io timeout after 60 seconds", LinkCut),
        (2, "error: unexpected end of file", LinkCut),
        (11, "write failed: No space left on device (28)", NoRoomError),
        (23, 'mkstemp "x" failed: No space left on device (28)', NoRoomError),
        (12, "mkdir: cannot create directory 'x': Disk quota exceeded", NoRoomError),
        (23, "denied (13)", BoxcarError),
        (12, f"{remote_folder.NO_FOLDER}\nconnection unexpectedly closed", BoxcarError),
        (127, "sh: 1: rsync: not found\nremote command not found", NoRsyncThere),
        (2, "protocol version mismatch -- is your shell clean?", NoRsyncThere),
    ],
)
def test_each_end_over_ssh_says_what_it_is(
    tmp_path: Path, code: int, words: str, error: type[Exception]
) -> None:
    place = Remote(FakeSsh(tmp_path), "/x")  # type: ignore[arg-type]
    with pytest.raises((BoxcarError, NoRsyncThere)) as raised:
        by_rsync.raise_for_end(code, words, tmp_path, place)
    assert type(raised.value) is error


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            'rsync: [receiver] mkstemp "/data/x/.a.pth.gY7" failed: Permission denied (13)\n'
            "rsync error: some files/attrs were not transferred (code 23) at main.c(1338)",
            "/data/x/.a.pth.gY7: Permission denied",
        ),
        (
            'rsync: [sender] link_stat "/s/best.pth" failed: No such file or directory (2)',
            "/s/best.pth: No such file or directory",
        ),
        # As 3.5.0 says it, and what 10.6 of OpenSSH and a banner say first.
        (
            "refusing to follow a symlink owned by an untrusted user; use --insecure-links locally "
            'or "insecure links = yes" in a daemon module ONLY if every path component is trusted\n'
            'rsync: [Receiver] change_dir#2 "/results/a" failed: Too many levels of symbolic links '
            "(40)",
            "/results/a: refusing to follow a symlink owned by an untrusted user",
        ),
        (
            "** WARNING: connection is not using a post-quantum key exchange algorithm.\n"
            '** This session may be vulnerable to "store now, decrypt later" attacks.\n'
            "Welcome to Rented GPUs!\n"
            "rsync: --info=progress2: unknown option\n"
            "rsync error: syntax or usage error (code 1) at main.c(1569)",
            "--info=progress2: unknown option",
        ),
        ('rsync: mkdir "/x" failed: Read-only file system (30)', "/x: Read-only file system"),
        ("rsync: [sender] no such option: --frob\r", "no such option: --frob"),
        ("some I/O error (5)\nand more", "some I/O error (5)"),
        ("rsync error: unexplained error (code 255) at rsync.c(716)", "no output"),
        ("\x1b[31mred\n", "\\x1b[31mred"),
    ],
)
def test_of_rsyncs_words_a_person_reads_what_went_wrong_and_where(words: str, reason: str) -> None:
    assert by_rsync.first_reason(words) == reason


def test_a_link_that_was_cut_is_told_in_our_words(tmp_path: Path) -> None:
    """As seen: what rsync says then has a carriage return in it, and names its C file."""
    raw = "\rrsync: [sender] write error: Broken pipe (32)\r\nrsync error: at io.c(949)"
    with pytest.raises(LinkCut) as raised:
        by_rsync.raise_for_end(10, raw, tmp_path, Remote(FakeSsh(tmp_path), "/x"))  # type: ignore[arg-type]
    assert "a socket failed" in str(raised.value) and "continues where" in str(raised.value)
    assert "io.c" not in str(raised.value) and "\r" not in str(raised.value)


@pytest.mark.parametrize(
    ("free_kib", "error"), [(4, NoRoomError), (9_000_000, BoxcarError), ("?", BoxcarError)]
)
def test_a_box_where_rsync_gave_up_on_a_file_is_asked_whether_its_disk_is_full(
    tmp_path: Path, free_kib: object, error: type[Exception]
) -> None:
    ssh = FakeSsh(tmp_path)
    ssh.says = DF.format(60, free_kib).encode()
    with pytest.raises(BoxcarError) as raised:
        by_rsync.raise_for_end(11, "", tmp_path, Remote(ssh, "/x"))  # type: ignore[arg-type]
    assert type(raised.value) is error


def test_all_of_a_long_list_reaches_an_rsync_that_is_slow_to_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More than a pipe holds, and nobody reads before it was looked at how far the copy is."""
    monkeypatch.setattr(by_rsync, "_LOOK_EVERY_S", 0.01)
    looks, names = list[int](), b"cells/c/manifest.json\0" * 10_000
    read = "import sys, time; time.sleep(0.2); print(len(sys.stdin.buffer.read()), file=sys.stderr)"
    found = by_rsync.run_rsync([sys.executable, "-I", "-S", "-c", read], names, (), looks.append)
    assert found == (0, str(len(names))) and len(looks) > 1
