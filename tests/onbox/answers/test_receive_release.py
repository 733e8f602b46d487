from __future__ import annotations

import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.disk import atomic
from boxcar.shared.errors import Message
from boxcar.shared.files import codec, release
from boxcar.shared.paths import DurablePaths
from onbox.answers import door, receive_release


class Sent:
    """A real release that was sent under an unfinished name, and what the laptop asks about it."""

    def __init__(self, run: Any) -> None:
        self.run = run
        self.target: Path = run.release
        self.folder = atomic.temporary_name(self.target)
        self.target.rename(self.folder)

    def again(self) -> Path:
        """The same, sent once more."""
        twin = atomic.temporary_name(self.target)
        shutil.copytree(self.folder if self.folder.exists() else self.target, twin)
        return twin

    def ask(self, ask: str, **words: Any) -> dict[str, Any]:
        places = {"run": "tiny", "durable_dir": self.run.plan.durable_dir}
        places |= {"data_dir": str(self.run.root / "box-a"), "digest": self.target.name} | words
        return door.answer(json.dumps({"ask": ask, **places}).encode())

    def prepare(self, sizes_bytes: Any, *, is_mounted: bool = False) -> dict[str, Any]:
        return self.ask("prepare", sizes_bytes=sizes_bytes, is_mounted=is_mounted)

    def install(self, folder: Path | None = None) -> dict[str, Any]:
        return self.ask("install", unfinished=(folder or self.folder).name)


@pytest.fixture
def sent(make_run: Any) -> Sent:
    return Sent(make_run({"a": {}}))


def error_of(told: dict[str, Any]) -> tuple[str, str]:
    error = dict(told["error"])
    return error.pop("kind"), str(codec.decode(Message, error, "error"))


def test_a_release_gets_its_name_once_it_is_checked(sent):
    assert sent.ask("release") == {"is_there": False, "problems": []}
    assert sent.install() == {"is_new": True}
    assert not sent.folder.exists()
    assert sent.ask("release") == {"is_there": True, "problems": []}


def test_installing_again_changes_nothing(sent):
    sent.install()
    twin = sent.again()
    before = sent.target.stat().st_ino
    assert sent.install(twin) == {"is_new": False}
    assert sent.install(twin) == {"is_new": False}  # its answer was lost, and it was asked again
    assert sent.target.stat().st_ino == before
    assert [path.name for path in sent.target.parent.iterdir()] == [sent.target.name]


def test_of_two_who_install_at_once_one_is_first_and_both_are_content(sent):
    folders = [sent.folder, *(sent.again() for _ in range(3))]
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(sent.install, folders))
    assert sorted(one["is_new"] for one in told) == [False, False, False, True]
    assert [path.name for path in sent.target.parent.iterdir()] == [sent.target.name]


@pytest.mark.parametrize("name", ["code/train.py", "plan.json", "run_queue.sh"])
@pytest.mark.parametrize("how", ["longer", "flipped", "missing", "link"])
def test_what_was_not_sent_right_gets_no_name(sent, name, how):
    path = sent.folder / name
    data = path.read_bytes()
    path.unlink()
    if how == "link":
        (sent.run.root / "elsewhere").write_bytes(data)
        path.symlink_to(sent.run.root / "elsewhere")
    elif how != "missing":
        path.write_bytes(data + b"\n" if how == "longer" else bytes([data[0] ^ 1]) + data[1:])
    kind, text = error_of(sent.install())
    assert kind == "DamagedError"
    assert name in text and str(sent.folder) in text
    assert not sent.target.exists()
    # rsync would take a flipped file for one that was sent already, again and again.
    assert not sent.folder.exists()


def test_a_release_that_says_another_digest_gets_no_name(sent):
    path = sent.folder / "release.json"
    twin = sent.again()
    path.write_bytes(path.read_bytes().replace(b'"tiny"', b'"tinx"'))
    assert error_of(sent.install())[0] == "DamagedError"
    (twin / "release.json").unlink()
    assert "release.json is missing" in error_of(sent.install(twin))[1]
    assert not sent.target.exists()


def test_a_release_that_is_there_but_wrong_is_reported_and_never_replaced(sent):
    sent.install()
    twin = sent.again()
    path = sent.target / "code" / "train.py"
    path.write_bytes(b"pass\n")
    found = sent.ask("release")
    assert found["is_there"] and "code/train.py" in found["problems"][0]
    kind, text = error_of(sent.install(twin))
    assert kind == "DamagedError"
    assert "code/train.py" in text and str(sent.target) in text
    assert path.read_bytes() == b"pass\n"


def test_a_link_in_the_place_of_a_release_is_no_release(sent):
    sent.target.symlink_to(sent.folder)
    assert sent.ask("release")["problems"] == ["it is a symbolic link, expected a folder"]
    assert error_of(sent.install())[0] == "DamagedError"


def test_nothing_sent_is_worth_another_try(sent):
    shutil.rmtree(sent.folder)
    kind, text = error_of(sent.install())
    assert kind == "TemporaryError"
    assert "invoke push" in text


@pytest.mark.parametrize("name", ["..", "{target}", ".x.0a0a0a0a.part", "../queues", ".git", "x/y"])
def test_only_an_unfinished_release_is_renamed_or_removed(sent, name):
    told = sent.ask("install", unfinished=name.format(target=sent.target.name))
    assert error_of(told)[0] == "InputError"
    assert sent.folder.exists()


def test_preparing_harms_no_push_of_another_release_that_is_on_its_way(sent, tmp_path):
    """As seen: two first launches at once, of different code."""
    other = DurablePaths(tmp_path / "tier", "tiny").release("0a" * 32)
    sent.ask("prepare", digest=other.name, sizes_bytes=[], is_mounted=False)
    assert sent.install() == {"is_new": True}


def test_preparing_makes_the_folders_and_removes_what_other_killed_pushes_left(
    sent, tmp_path, monkeypatch
):
    monkeypatch.setattr(receive_release, "STILL_S", 0.0)
    tier = DurablePaths(tmp_path / "tier", "tiny")
    stay = [tier.release("0a" * 32), tier.cell(".b.0a0a0a0a.part"), sent.folder]
    for path in stay[:2]:
        path.mkdir()
    for name in ("0a" * 32, "b"):
        (tier.releases / f".{name}.0a0a0a0a.part").mkdir()
    (tier.releases / ".file.0a0a0a0a.part").touch()
    (tier.releases / f".{sent.target.name}.0a0a0a0a.part").symlink_to(tier.cells)
    shutil.rmtree(tier.claim("x").parent)
    assert sent.prepare([1000, 0])["kept"] == sent.folder.name
    assert set(tier.releases.iterdir()) == {stay[0], sent.folder}
    assert all(path.is_dir() for path in (*tier.folders(), *stay))
    assert (tmp_path / "box-a" / "boxcar" / "tiny").is_dir()
    shutil.rmtree(sent.folder)
    assert sent.prepare([])["kept"] is None


def test_what_was_left_before_the_clock_was_set_back_is_not_taken_for_a_push_under_way(
    sent, tmp_path, monkeypatch
):
    left = DurablePaths(tmp_path / "tier", "tiny").releases / ".b.0a0a0a0a.part"
    left.mkdir()
    now_s = time.time()
    monkeypatch.setattr(receive_release.time, "time", lambda: now_s - 2 * receive_release.STILL_S)
    sent.prepare([])
    assert not left.exists()


def test_a_release_that_has_no_room_is_refused(sent):
    assert error_of(sent.prepare([1 << 60]))[0] == "NoRoomError"


def test_what_did_not_change_can_be_copied_from_the_newest_release_that_is_there(sent):
    agents_file, gone = str(sent.run.root / "box-a" / "boxcar"), "c" * 64
    assert sent.prepare([1])["bases"] == [agents_file]
    sent.install()
    sent.target.with_name(gone).mkdir()
    for digest in (sent.target.name, gone):
        assert sent.ask("newest", digest=digest) == {}
    sent.target.with_name(gone).rmdir()
    other = sent.ask("prepare", digest="d" * 64, sizes_bytes=[1], is_mounted=False)
    assert other["bases"] == [f"../{sent.target.name}", agents_file]


def test_what_was_sent_already_needs_no_room_again(sent):
    disk = os.statvfs(sent.folder)
    free_bytes = disk.f_bavail * disk.f_frsize
    with (sent.folder / "sent").open("wb") as file:
        file.truncate(free_bytes)  # takes no room itself
    assert sent.prepare([free_bytes])["kept"] == sent.folder.name


def test_a_tier_that_is_not_mounted_is_not_made(sent, tmp_path):
    (tmp_path / "tier").rename(tmp_path / "unmounted")
    kind, text = error_of(sent.prepare([], is_mounted=True))
    assert kind == "InputError"
    assert str(tmp_path / "tier") in text and "mounted" in text
    assert not (tmp_path / "tier").exists()
    assert sent.prepare([])["kept"] is None
    assert (tmp_path / "tier").is_dir()


@pytest.mark.parametrize("sizes", [None, 1, ["1"], [-1], [True]])
def test_sizes_are_numbers_of_bytes(sent, sizes):
    assert error_of(sent.prepare(sizes))[0] == "InputError"
    assert sent.folder.exists()


@pytest.mark.parametrize("line", ["_sync", "_problems", "rename"])
def test_killed_between_two_lines_the_same_call_completes_it(sent, monkeypatch, line):
    class Killed(BaseException):
        pass

    rename = Path.rename

    def kill(*words: Any) -> None:
        if line == "rename":
            rename(*words)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Path if line == "rename" else receive_release, line, kill)
        with pytest.raises(Killed):
            sent.install()
    sent.install()
    assert sent.ask("release") == {"is_there": True, "problems": []}


# --- the newest


ONE, TWO = "1" * 64, "2" * 64


def ask(tmp_path: Path, digest: str, name: str = "newest") -> dict[str, Any]:
    places = {"run": "tiny", "durable_dir": str(tmp_path), "data_dir": str(tmp_path)}
    return door.answer(json.dumps({"ask": name, **places, "digest": digest}).encode())


def releases(tmp_path: Path, *digests: str) -> Path:
    for digest in digests:
        (tmp_path / "boxcar/tiny/releases" / digest).mkdir(parents=True)
    return tmp_path / "boxcar/tiny/newest.json"


def test_the_one_that_was_pushed_last_is_the_newest(tmp_path):
    path = releases(tmp_path, ONE, TWO)
    for digest, pushed in ((ONE, (ONE,)), (TWO, (ONE, TWO)), (TWO, (ONE, TWO)), (ONE, (TWO, ONE))):
        assert ask(tmp_path, digest) == {}
        assert release.releases(path) == pushed
        assert ask(tmp_path, digest, "release").get("is_newest")


def test_one_that_is_not_there_is_no_newest(tmp_path):
    path = releases(tmp_path, ONE)
    assert "is not there" in ask(tmp_path, TWO)["error"]["text"]
    assert release.releases(path) == ()


def test_a_damaged_list_is_made_anew(tmp_path):
    path = releases(tmp_path, ONE)
    path.write_text("{")
    assert not ask(tmp_path, ONE, "release").get("is_newest")
    assert ask(tmp_path, ONE) == {}
    assert release.releases(path) == (ONE,)


def _files_of(folder: Path) -> list[dict[str, Any]]:
    listed = json.loads((folder / "release.json").read_text())["files"]
    assert len(listed) > 3
    return list(listed)


def test_where_there_is_no_rsync_the_box_copies_what_its_newest_release_has(sent):
    files = _files_of(sent.folder)
    sent.install()
    sent.ask("newest")
    (sent.target / "code" / "train.py").write_bytes(b"pass\n")  # edited there since
    other = "0a" * 32
    unfinished = f".{other}.0123abcd.part"
    told = sent.ask("copy_unchanged", digest=other, unfinished=unfinished, files=files)
    names = {file["path"] for file in files} - {"code/train.py"}
    assert set(told["names"]) == names
    folder = sent.target.with_name(unfinished)
    for name in names:
        assert (folder / name).read_bytes() == (sent.target / name).read_bytes()
    assert not (folder / "code" / "train.py").exists()
    shutil.rmtree(sent.target)
    again = sent.ask("copy_unchanged", digest=other, unfinished=unfinished, files=files)
    assert again == told, "what is there already is told again"


def test_a_copy_follows_no_link_and_leads_nowhere_else(sent, tmp_path):
    files = _files_of(sent.folder)
    sent.install()
    sent.ask("newest")
    train = sent.target / "code" / "train.py"
    elsewhere = tmp_path / "elsewhere.py"
    train.rename(elsewhere)
    train.symlink_to(elsewhere)
    other = "0a" * 32
    asked = {"digest": other, "unfinished": f".{other}.0123abcd.part"}
    assert "code/train.py" not in sent.ask("copy_unchanged", files=files, **asked)["names"]
    outside = [dict(files[0], path="../../../escaped")]
    assert error_of(sent.ask("copy_unchanged", files=outside, **asked))[0] == "DamagedError"
    refused = sent.ask("copy_unchanged", files=[], digest=other, unfinished="../queues")
    assert error_of(refused)[0] == "InputError"
