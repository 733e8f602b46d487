from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from onbox.result import left
from onbox.result.left import Left


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """{out} with a checkpoint, and an artifact folder that has a file."""
    out = tmp_path / "out"
    write(out, "checkpoints/step_120.pth", b"weights")
    write(out, "art/metrics.json", b"{}")
    return out


def write(out: Path, name: str, data: bytes) -> None:
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / name).write_bytes(data)


def link(out: Path, name: str, target: str) -> None:
    (out / name).symlink_to(target)


def names(found: Left) -> list[str]:
    assert not found.problems
    return sorted(found.files)


def test_a_file_and_a_folder_are_what_they_hold(out):
    write(out, "art/deep/er/1.npy", b"1")
    assert names(left.look(out, "art")) == ["art/deep/er/1.npy", "art/metrics.json"]
    assert names(left.look(out, "checkpoints/step_120.pth")) == ["checkpoints/step_120.pth"]
    assert left.look(out, "never") == Left()
    assert left.look(out, "art/metrics.json/below") == Left()


def test_links_inside_the_cell_are_followed(out):
    link(out, "best.pth", "latest.pth")
    link(out, "latest.pth", "checkpoints/step_120.pth")
    link(out, "art/best.pth", str(out / "checkpoints/step_120.pth"))
    link(out, "art/all", "../checkpoints")
    link(out, "model", "art")
    assert left.look(out, "best.pth").files == {"best.pth": out / "checkpoints/step_120.pth"}
    inside = ["all/step_120.pth", "best.pth", "metrics.json"]
    assert names(left.look(out, "art")) == [f"art/{name}" for name in inside]
    assert names(left.look(out, "model")) == [f"model/{name}" for name in inside]


def test_what_is_reached_by_a_link_in_a_cells_own_linked_folder_is_inside(out, tmp_path):
    link(out, "art/best.pth", "../checkpoints/step_120.pth")
    (tmp_path / "scratch").symlink_to(out.parent)
    assert "art/best.pth" in names(left.look(tmp_path / "scratch/out", "art"))


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("../gone.pth", "is a link to nothing"),
        ("/etc/hostname", "is a link that leads out of"),
        ("../../outside", "is a link that leads out of"),
        ("best.pth", "is a link that goes round in a circle"),
    ],
)
@pytest.mark.parametrize("artifact", ["art", "art/best.pth"])
def test_a_link_that_leads_nowhere_or_out_is_a_problem(out, target, problem, artifact):
    write(out.parent, "outside", b"not yours")
    link(out, "art/best.pth", target)
    (found,) = left.look(out, artifact).problems
    assert found.startswith(f"art/best.pth {problem}")


def test_what_lies_below_a_link_that_leads_nowhere_is_a_problem_and_not_unwritten(out, tmp_path):
    """As seen: the folder behind `art` was unmounted, and a good cell was trained once more."""
    (out / "runs").mkdir()
    link(out, "runs/last", str(tmp_path / "unmounted"))
    for artifact in ("runs/last/best.pth", "runs/last/deep/best.pth"):
        found = left.look(out, artifact)
        assert not found.files
        assert found.problems == [f"{artifact} lies below runs/last, a link to nothing"]
    link(out, "model", "art")
    assert left.look(out, "model/never") == Left()


@pytest.mark.parametrize("target", [".", "..", "../../out", "deep/up"])
def test_a_link_to_a_folder_that_holds_it_is_left_out(out, target):
    write(out, "art/deep/1.npy", b"1")
    link(out, "art/deep/up", "..")
    link(out, "art/round", target)
    found = left.look(out, "art")
    assert names(found) == ["art/deep/1.npy", "art/metrics.json"]
    assert "art/round is a link to a folder that holds it" in found.left_out


def test_two_folders_that_lead_to_each_other_come_to_an_end(out):
    for here, there in (("a", "b"), ("b", "a")):
        write(out, f"art/{here}/1", b"1")
        link(out, f"art/{here}/{there}", f"../{there}")
    files = ["art/a/1", "art/a/b/1", "art/b/1", "art/b/a/1", "art/metrics.json"]
    assert names(left.look(out, "art")) == files


def test_links_that_multiply_are_a_problem_and_not_a_million_files(out, monkeypatch):
    monkeypatch.setattr(left, "_MOST_WAYS", 20)
    for number in range(30):
        (out / f"art/{number}").mkdir()
        for name in "ab":
            link(out, f"art/{number}/{name}", f"../{number + 1}")
    (out / "art/30").mkdir()
    found = left.look(out, "art/0")
    assert "is one of more than 20 links to" in found.problems[0]
    assert len(found.problems) < 1000


def test_what_is_no_file_is_left_out_and_named(out, monkeypatch):
    os.mkfifo(out / "art/fifo")
    monkeypatch.chdir(out / "art")  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("wandb.sock")
        found = left.look(out, "art")
    assert names(found) == ["art/metrics.json"]
    assert sorted(found.left_out) == ["art/fifo is a pipe", "art/wandb.sock is a socket"]


def test_an_empty_file_in_a_folder_is_one_of_its_files(out):
    write(out, "art/_SUCCESS", b"")
    assert names(left.look(out, "art")) == ["art/_SUCCESS", "art/metrics.json"]


def test_an_artifact_that_is_itself_empty_is_a_problem(out):
    write(out, "best.pth", b"")
    write(out, "ranks/0.log", b"")
    (out / "folder/deep").mkdir(parents=True)
    os.mkfifo(out / "pipe")
    link(out, "link", "best.pth")
    assert left.look(out, "best.pth").problems == ["best.pth is empty (0 bytes)"]
    assert left.look(out, "link").problems == ["link is empty (0 bytes)"]
    assert left.look(out, "ranks").problems == ["ranks holds only empty files"]
    assert left.look(out, "folder").problems == ["folder is an empty folder"]
    assert left.look(out, "pipe").problems == ["pipe holds no file: pipe is a pipe"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_a_problem(out):
    (out / "art/metrics.json").chmod(0)
    assert left.look(out, "art").problems == ["art/metrics.json cannot be read: permission denied"]


def test_names_that_are_too_long_in_all_are_a_problem(out):
    folders = [os.open(out / "art", os.O_RDONLY)]
    for _ in range(20):
        os.mkdir("x" * 250, dir_fd=folders[-1])
        folders.append(os.open("x" * 250, os.O_RDONLY, dir_fd=folders[-1]))
    for folder in folders:
        os.close(folder)
    found = left.look(out, "art")
    assert "cannot be read: File name too long" in found.problems[0]


def test_a_name_that_is_not_utf8_is_a_name(out):
    name = os.fsdecode(b"art/caf\xe9.json")
    write(out, name, b"{}")
    assert name in names(left.look(out, "art"))
