"""The lines of a large queue file: the same as parsed anew, and known by its bytes alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boxcar.laptop.project.project import open_project
from boxcar.laptop.queues import parsed_before
from boxcar.laptop.queues.parsed import parsed
from boxcar.laptop.queues.parsed_before import ParsedBefore

ROOT = Path(__file__).parents[3]
DATA = b"""\
a.json recon 3
# b.json recon 3
c.json - name=c nproc=2 after=a time=2h env.SEED=1 lr=1e-3 'words=a b'
d.json recon -- --free words
"""


@pytest.fixture(autouse=True)
def _worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsed_before, "WORTH_LINES", 1)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is parsed from here on."""
    found = list[bytes]()
    monkeypatch.setattr(parsed_before, "parsed", lambda data: (found.append(data), parsed(data))[1])
    return found


def test_they_are_the_same_and_are_not_parsed_again(tmp_path: Path, asked: list[bytes]) -> None:
    for times in range(3):
        before = ParsedBefore(tmp_path / "kept.json")
        assert before.parse(DATA) == parsed(DATA) and before.parse(DATA) is before.parse(DATA)
        assert [line.judged for line in before.parse(DATA).cells] == [0, 2, 0]
        before.write()
        assert asked == [DATA], times


@pytest.mark.parametrize("data", [DATA + b"e.json recon 3\n", DATA.replace(b"1e-3", b"1e-4")])
def test_other_bytes_are_parsed(tmp_path: Path, asked: list[bytes], data: bytes) -> None:
    before = ParsedBefore(tmp_path / "kept.json")
    before.parse(DATA)
    before.write()
    again = ParsedBefore(tmp_path / "kept.json")
    assert again.parse(data) == parsed(data) and asked == [DATA, data]
    again.write()
    assert len(json.loads((tmp_path / "kept.json").read_bytes().partition(b"\n")[2])[1]) == 1


@pytest.mark.parametrize("data", [DATA + b"one\n", DATA + b"f.json recon", DATA * 2])
def test_of_a_file_with_a_line_that_is_no_cell_nothing_is_kept(tmp_path: Path, data: bytes) -> None:
    before = ParsedBefore(tmp_path / "kept.json")
    assert before.parse(data) == parsed(data)
    before.write()
    assert not (tmp_path / "kept.json").exists()


def test_a_small_file_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsed_before, "WORTH_LINES", 1000)
    before = ParsedBefore(tmp_path / "kept.json")
    before.parse(DATA)
    before.write()
    assert not (tmp_path / "kept.json").exists()


# --- what decides


def lie(root: Path) -> None:
    """A file says that the queue has one cell less."""
    queue = (root / "queue.txt").read_bytes()
    before = ParsedBefore(root / ".boxcar/parsed/run-1.json")
    before._used[parsed_before.digest.of_bytes(queue)] = parsed(queue.partition(b"\n")[2])
    before.write()


def test_only_who_shows_a_run_believes_one_that_lies(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    for name in ("train.py", "a.json", "b.json"):
        (tmp_path / "code" / name).touch()
    job = "name: run-1\ncode: code\ncommand: train.py {cfg} {out}\nartifacts: [best.pth]\n"
    (tmp_path / "job.yaml").write_text(f"{job}queues: {{queue.txt: box-a}}\n")
    (tmp_path / "queue.txt").write_text("a.json recon\nb.json recon\n")
    lie(tmp_path)
    shown = open_project(tmp_path / "job.yaml", "local", shows_only=True)
    assert [cell.name for cell in shown.plan.cells] == ["b"], "else it is no lie"
    decides = open_project(tmp_path / "job.yaml", "local")
    assert [cell.name for cell in decides.plan.cells] == ["a", "b"]
    assert decides.parse is parsed


def test_status_alone_only_shows() -> None:
    tasks = (ROOT / "tasks.py").read_text()
    assert tasks.count("shows_only=True") == 1
    assert "return status(_launched(c, profile, job, shows_only=True)" in tasks
    modules = [path for room in ("boxcar", "onbox") for path in (ROOT / room).rglob("*.py")]
    users = {path.stem for path in modules if "parsed_before import" in path.read_text()}
    assert users == {"project"}
    assert not [path for path in modules if "shows_only=True" in path.read_text()]
