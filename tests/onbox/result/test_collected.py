from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.paths import OWN_NAME
from onbox.result import collect
from onbox.result.collect import SECRET, TOO_MANY, TOO_MUCH, is_loss, look

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


def test_each_file_is_taken_once_and_what_may_hold_a_secret_is_left_out(out: Path) -> None:
    found = look(out, ("wandb/", "tb/", "swanlog/"), ())
    assert set(found.files) == {
        f"{RUN}/run-1.wandb",
        f"{RUN}/logs/debug.log",
        "tb/events.out.tfevents.1",
    }
    assert found.sentences == (f"{SECRET}: wandb/settings",)
    assert not any(map(is_loss, found.sentences))


def test_a_pattern_takes_what_it_matches(out: Path) -> None:
    left(out / "lightning_logs/version_0/events.1", b"x")
    left(out / "lightning_logs/keep.txt", b"x")
    found = look(out, ("tb/*.1", "lightning_logs/version_*/"), ())
    assert list(found.files) == ["tb/events.out.tfevents.1", "lightning_logs/version_0/events.1"]


def test_what_is_published_is_not_carried_a_second_time(out: Path) -> None:
    left(out / "best.pth", b"model")
    (out / "wandb/best.pth").symlink_to("../best.pth")
    found = look(out, ("tb/", "wandb/"), {"best.pth", "tb/events.out.tfevents.1"})
    assert set(found.files) == {f"{RUN}/run-1.wandb", f"{RUN}/logs/debug.log"}


def test_nothing_is_taken_where_out_itself_is_a_link(out: Path, tmp_path: Path) -> None:
    (tmp_path / "cell").mkdir()
    (tmp_path / "cell/out").symlink_to(out)
    found = look(tmp_path / "cell/out", ("tb/", "wandb/"), ())
    assert found.files == {}
    assert "{out} is a link by now" in found.sentences[0]


def test_no_link_is_followed_out_of_the_cell(out: Path, tmp_path: Path) -> None:
    left(tmp_path / "secret", b"secret")
    (out / "tb/link").symlink_to(tmp_path / "secret")
    (out / "tb/gone").symlink_to("nothing")
    found = look(out, ("tb/",), ())
    assert list(found.files) == ["tb/events.out.tfevents.1"]
    (sentence,) = found.sentences
    assert "tb/link is a link that leads out of {out}" in sentence
    assert "tb/gone is a link to nothing" in sentence and not is_loss(sentence)


def test_what_lies_behind_a_link_to_a_folder_is_named_once(out: Path, tmp_path: Path) -> None:
    left(tmp_path / "cache", b"x")
    (out / RUN / "logs/core.log").symlink_to(tmp_path / "cache")
    (sentence, _) = look(out, ("wandb/",), ()).sentences
    assert sentence.count("core.log") == 1 and f"{RUN}/logs/core.log" in sentence


def test_a_file_with_a_secret_of_the_run_is_left_out_under_any_name(out: Path) -> None:
    left(out / "tb/notes", b"key=0123456789abcdef;")
    found = look(out, ("tb/",), (), secrets=["0123456789abcdef"])
    assert list(found.files) == ["tb/events.out.tfevents.1"]
    assert found.sentences == (f"{SECRET}: tb/notes",)


def test_what_is_over_the_bounds_is_left_out_and_said(out: Path) -> None:
    for name in ("a", "b", "c"):
        left(out / "big" / name, b"12345")
    left(out / "big/d", b"1")
    found = look(out, ("big/",), (), most_bytes=11)
    assert list(found.files) == ["big/a", "big/b", "big/d"]
    assert found.sentences == (f"{TOO_MUCH}: big/c",) and is_loss(found.sentences[0])
    found = look(out, ("big/",), (), most_files=1)
    assert found.sentences == (f"{TOO_MANY}: big/b, big/c, big/d",)
    assert collect.MOST_BYTES == 2**30


def test_a_name_that_boxcar_uses_itself_is_left_out(out: Path) -> None:
    left(out / "manifest.json", b"{}")
    found = look(out, ("*.json",), ())
    assert not found.files and found.sentences == (f"{OWN_NAME}: manifest.json",)


def test_empty_files_and_an_empty_folder_are_no_trouble(out: Path) -> None:
    left(out / "logs/empty", b"")
    (out / "none").mkdir()
    found = look(out, ("logs/", "none/"), ())
    assert list(found.files) == ["logs/empty"] and not found.sentences


def test_a_link_of_the_job_is_not_so_much_as_named(out: Path, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (out / "data").symlink_to(tmp_path / "code")
    assert look(out, ("*/",), (), links=["data"]).sentences == look(out, ("wandb/",), ()).sentences
    assert any("data is a link" in text for text in look(out, ("*/",), ()).sentences)
