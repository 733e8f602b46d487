from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from plans import make_plan

from boxcar.shared.cell.cell_line import CellLine, parse
from boxcar.shared.disk import checked_copy, digest, mounts
from boxcar.shared.errors import DamagedError
from boxcar.shared.paths import OWN_NAME, DurablePaths, ScratchPaths
from onbox.machine.place import Place
from onbox.result import beside, collect
from onbox.result.asked import Asked, of_cell
from onbox.result.collect import SECRET, TOO_MANY, TOO_MUCH, is_loss, look, move

RUN = "wandb/offline-run-1"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """What wandb leaves offline, with its links, and TensorBoard's events."""
    left(tmp_path / "out" / RUN / "run-1.wandb", b"log")
    left(tmp_path / "out" / RUN / "logs/debug.log", b"debug")
    left(tmp_path / "out" / "wandb/settings", b"[default]\n")
    left(tmp_path / "out" / "tb/events.out.tfevents.1", b"events")
    (tmp_path / "out/wandb/latest-run").symlink_to("offline-run-1")
    (tmp_path / "out/wandb/debug.log").symlink_to("offline-run-1/logs/debug.log")
    return tmp_path / "out"


def left(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def test_each_file_is_taken_once_and_what_may_hold_a_secret_is_left_out(out):
    found = look(out, ("wandb/", "tb/", "swanlog/"), ())
    assert set(found.files) == {
        f"{RUN}/run-1.wandb",
        f"{RUN}/logs/debug.log",
        "tb/events.out.tfevents.1",
    }
    assert found.sentences == (f"{SECRET}: wandb/settings",)
    assert not any(map(is_loss, found.sentences))


def test_a_pattern_takes_what_it_matches(out):
    left(out / "lightning_logs/version_0/events.1", b"x")
    left(out / "lightning_logs/keep.txt", b"x")
    found = look(out, ("tb/*.1", "lightning_logs/version_*/"), ())
    assert list(found.files) == ["tb/events.out.tfevents.1", "lightning_logs/version_0/events.1"]


def test_what_is_published_is_not_carried_a_second_time(out):
    left(out / "best.pth", b"model")
    (out / "wandb/best.pth").symlink_to("../best.pth")
    found = look(out, ("tb/", "wandb/"), {"best.pth", "tb/events.out.tfevents.1"})
    assert set(found.files) == {f"{RUN}/run-1.wandb", f"{RUN}/logs/debug.log"}


def test_nothing_is_taken_where_out_itself_is_a_link(out, tmp_path):
    (tmp_path / "cell").mkdir()
    (tmp_path / "cell/out").symlink_to(out)
    found = look(tmp_path / "cell/out", ("tb/", "wandb/"), ())
    assert found.files == {}
    assert "{out} is a link by now" in found.sentences[0]


def test_no_link_is_followed_out_of_the_cell(out, tmp_path):
    left(tmp_path / "secret", b"secret")
    (out / "tb/link").symlink_to(tmp_path / "secret")
    (out / "tb/gone").symlink_to("nothing")
    found = look(out, ("tb/",), ())
    assert list(found.files) == ["tb/events.out.tfevents.1"]
    (sentence,) = found.sentences
    assert "tb/link is a link that leads out of {out}" in sentence
    assert "tb/gone is a link to nothing" in sentence and not is_loss(sentence)


def test_what_lies_behind_a_link_to_a_folder_is_named_once(out, tmp_path):
    left(tmp_path / "cache", b"x")
    (out / RUN / "logs/core.log").symlink_to(tmp_path / "cache")
    (sentence, _) = look(out, ("wandb/",), ()).sentences
    assert sentence.count("core.log") == 1 and f"{RUN}/logs/core.log" in sentence


def test_a_file_with_a_secret_of_the_run_is_left_out_under_any_name(out):
    left(out / "tb/notes", b"key=0123456789abcdef;")
    found = look(out, ("tb/",), (), secrets=["0123456789abcdef"])
    assert list(found.files) == ["tb/events.out.tfevents.1"]
    assert found.sentences == (f"{SECRET}: tb/notes",)


def test_what_is_over_the_bounds_is_left_out_and_said(out):
    for name in ("a", "b", "c"):
        left(out / "big" / name, b"12345")
    left(out / "big/d", b"1")
    found = look(out, ("big/",), (), most_bytes=11)
    assert list(found.files) == ["big/a", "big/b", "big/d"]
    assert found.sentences == (f"{TOO_MUCH}: big/c",) and is_loss(found.sentences[0])
    found = look(out, ("big/",), (), most_files=1)
    assert found.sentences == (f"{TOO_MANY}: big/b, big/c, big/d",)
    assert collect.MOST_BYTES == 2**30


def test_a_name_that_boxcar_uses_itself_is_left_out(out):
    left(out / "manifest.json", b"{}")
    found = look(out, ("*.json",), ())
    assert not found.files and found.sentences == (f"{OWN_NAME}: manifest.json",)


def test_empty_files_and_an_empty_folder_are_no_trouble(out):
    left(out / "logs/empty", b"")
    (out / "none").mkdir()
    found = look(out, ("logs/", "none/"), ())
    assert list(found.files) == ["logs/empty"] and not found.sentences


def test_a_link_of_the_job_is_not_so_much_as_named(out, tmp_path):
    (tmp_path / "code").mkdir()
    (out / "data").symlink_to(tmp_path / "code")
    assert look(out, ("*/",), (), links=["data"]).sentences == look(out, ("wandb/",), ()).sentences
    assert any("data is a link" in text for text in look(out, ("*/",), ()).sentences)


# --- strays


WANTED = ("wandb/", "tb/", "outputs/wandb/", "lightning_logs/version_*/")


@pytest.fixture
def code(tmp_path: Path) -> Path:
    for name in ("code", "out"):
        (tmp_path / name).mkdir()
    return tmp_path / "code"


def written(path: Path, text: str = "x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def below(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}


def test_what_is_collected_goes_into_out_and_the_rest_stays(code, tmp_path):
    for name in ("wandb/run-1/a", "data/x", "outputs/wandb/b", "outputs/c", "tb"):
        written(code / name)
    written(code / "lightning_logs/version_0/d")
    added = ("wandb/", "data/", "outputs/", "lightning_logs/", "tb")
    assert move(code, added, WANTED, tmp_path / "out")
    assert below(tmp_path / "out") == {
        "wandb/run-1/a",
        "outputs/wandb/b",
        "lightning_logs/version_0/d",
        "tb",
    }
    assert below(code) == {"data/x", "outputs/c"}
    assert not move(code, ("data/", "outputs/"), WANTED, tmp_path / "out")


def test_a_later_attempts_logs_join_those_of_the_first(code, tmp_path):
    out = tmp_path / "out"
    written(out / "wandb/run-1/a", "first")
    (out / "wandb/latest").symlink_to("run-1")
    written(code / "wandb/run-1/a", "second")
    written(code / "wandb/run-2/a")
    (code / "wandb/latest").symlink_to("run-2")
    assert move(code, ("wandb/",), WANTED, out)
    assert (out / "wandb/run-1/a").read_text() == "first"
    assert (out / "wandb/run-1/a.1").read_text() == "second"
    assert (out / "wandb/run-2/a").exists() and not (code / "wandb").exists()


def test_where_the_release_has_the_folder_only_what_was_added_to_it_is_moved(code, tmp_path):
    written(code / "wandb/shipped")
    written(code / "wandb/run-1/a")
    assert move(code, ("wandb/run-1/",), WANTED, tmp_path / "out")
    assert below(code) == {"wandb/shipped"} and below(tmp_path / "out") == {"wandb/run-1/a"}


def test_a_link_in_out_leads_nothing_elsewhere(code, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out/wandb").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "out/outputs").symlink_to(tmp_path / "elsewhere")
    written(code / "wandb/a")
    written(code / "outputs/wandb/b")
    assert move(code, ("wandb/", "outputs/"), WANTED, tmp_path / "out")
    assert below(tmp_path / "elsewhere") == set()
    assert (tmp_path / "out/wandb.1/a").exists() and (code / "outputs/wandb/b").exists()


def test_through_an_out_that_is_itself_a_link_nothing_is_moved(code, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").rmdir()
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    written(code / "wandb/a")
    assert not move(code, ("wandb/",), WANTED, tmp_path / "out")
    assert below(tmp_path / "elsewhere") == set() and (code / "wandb/a").exists()


# --- beside


@pytest.fixture
def code_beside(tmp_path: Path) -> Path:
    (tmp_path / "code/configs").mkdir(parents=True)
    return tmp_path / "code"


def written_beside(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.fsencode(path.name))


def test_what_was_written_is_moved_to_the_same_place_whole(code_beside, tmp_path):
    odd = os.fsdecode(b"\xff x")
    written_beside(code_beside / "configs/new", code_beside / "data/x/one", code_beside / odd)
    (code_beside / "link").symlink_to("/nowhere")
    inode = (code_beside / "data").stat().st_ino
    beside.move(
        code_beside, ("configs/new", "data/", "link", odd, "gone meanwhile"), tmp_path / "to"
    )
    assert [path.name for path in code_beside.rglob("*")] == ["configs"]
    assert (tmp_path / "to/configs/new").read_text() == "new"
    assert (tmp_path / "to/data").stat().st_ino == inode, "one rename, however many files"
    assert (tmp_path / "to/link").readlink() == Path("/nowhere")
    assert (tmp_path / "to" / odd).exists()


def test_what_was_moved_before_is_not_overwritten(code_beside, tmp_path):
    for text in ("first", "second", "third"):
        (code_beside / "a.pt").write_text(text)
        beside.move(code_beside, ("a.pt",), tmp_path / "to")
    texts = [(tmp_path / "to" / name).read_text() for name in ("a.pt", "a.pt.1", "a.pt.2")]
    assert texts == ["first", "second", "third"]


def failing(number: int) -> Callable[..., None]:
    def rename(source: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number), str(source))

    return rename


def test_to_another_disk_it_is_not_copied_but_removed(code_beside, tmp_path, monkeypatch):
    written_beside(code_beside / "data/one")
    monkeypatch.setattr(Path, "rename", failing(errno.EXDEV))
    beside.move(code_beside, ("data/",), tmp_path / "to")
    assert not (code_beside / "data").exists()


def test_a_disk_that_is_mounted_there_is_left_alone_and_said(code_beside, tmp_path, monkeypatch):
    written_beside(code_beside / "data/one")
    monkeypatch.setattr(Path, "rename", failing(errno.EBUSY))
    monkeypatch.setattr(mounts, "points_below", lambda folder: [str(folder)])
    with pytest.raises(OSError, match=r"a disk is mounted there: unmount it: '.*/data'"):
        beside.move(code_beside, ("data/",), tmp_path / "to")
    assert (code_beside / "data/one").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may move any folder")
def test_a_read_only_folder_is_moved_too(code_beside, tmp_path):
    written_beside(code_beside / "data/one")
    (code_beside / "data").chmod(0o555)
    beside.move(code_beside, ("data/",), tmp_path / "to")
    assert (tmp_path / "to/data/one").exists()


def test_room_is_made_by_removing_the_oldest_first_and_no_more_than_that(tmp_path, monkeypatch):
    scratch = ScratchPaths(tmp_path, "r")
    for age_s, cell in enumerate(("new", "old", "oldest")):
        written_beside(scratch.beside(cell) / "data")
        os.utime(scratch.beside(cell), (10_000 - age_s, 10_000 - age_s))
    assert beside.make_room(scratch, ("new", "old", "oldest", "none"), [1]) == []
    monkeypatch.setattr(
        checked_copy,
        "lack_of_room",
        lambda folder, sizes: "full" if scratch.beside("old").exists() else "",
    )
    assert beside.make_room(scratch, ("new", "old", "oldest"), [1]) == ["oldest", "old"]
    assert scratch.beside("new").exists()


# --- asked for


TEXT = "lr: 0.1  # größer\n".encode()


def asked(root: Path, text: str, sha256: str | None, **plan: Any) -> Asked:
    place = SimpleNamespace(
        plan=make_plan(**plan),
        durable=DurablePaths(root / "tier", "digits"),
        scratch=ScratchPaths(root, "digits"),
        data=root / "data",
    )
    return of_cell(cast(Place, place), line(text), root, sha256)


def line(text: str) -> CellLine:
    return parse(text.encode(), 0, 1)


def config_of(root: Path, data: bytes, sha256: str | None = None) -> str | None:
    (root / "a.yaml").write_bytes(data)
    return asked(root, "a.yaml t 3", sha256 or digest.of_bytes(data)).config


def test_a_result_says_its_configs_text(tmp_path):
    assert config_of(tmp_path, TEXT) == TEXT.decode()


@pytest.mark.parametrize("data", [b"\xff\xfe", b"x" * (64 * 1024 + 1)])
def test_what_is_no_text_or_no_page_is_left_out(tmp_path, data):
    assert config_of(tmp_path, data) is None


def test_a_config_that_was_changed_since_is_not_what_was_asked(tmp_path):
    assert config_of(tmp_path, TEXT, "0" * 64) is None


def test_without_a_config_there_is_no_text(tmp_path):
    found = asked(tmp_path, "- t name=a lr=1", None, command=("t.py", "{name}"))
    assert found.config is None and found.words == ("t.py", "a", "lr=1")


def test_a_config_that_is_gone_costs_only_its_text(tmp_path):
    found = asked(tmp_path, "a.yaml t", "0" * 64)
    assert found.config is None and found.saying


def test_a_config_outside_the_code_is_never_opened(tmp_path):
    odd = CellLine(0, 1, "a", "../a.yaml", "t", 3)
    place = SimpleNamespace(
        plan=make_plan(),
        durable=DurablePaths(tmp_path, "digits"),
        scratch=ScratchPaths(tmp_path, "digits"),
        data=tmp_path / "data",
    )
    with pytest.raises(DamagedError):
        of_cell(cast(Place, place), odd, tmp_path, "0" * 64)


def test_the_words_are_those_of_a_first_start(tmp_path):
    plan: dict[str, Any] = {"command": ("t.py", "{resume}"), "resume_args": ("-r", "x")}
    out = ScratchPaths(tmp_path, "digits").out("a")
    found = asked(tmp_path, "a.yaml t name=a lr=1", None, resume="last.pt", **plan)
    assert found.words == ("t.py", f"{out}/last.pt", "lr=1")
    pattern = asked(tmp_path, "a.yaml t name=a lr=1", None, resume="step_*.pt", **plan)
    assert pattern.words == ("t.py", "", "lr=1")


def test_the_folder_of_a_cell_before_is_among_the_words(tmp_path):
    found = asked(tmp_path, "a.yaml t after=x", None, command=("t.py", "{after}"))
    assert found.words == ("t.py", str(DurablePaths(tmp_path / "tier", "digits").cell("x")))
