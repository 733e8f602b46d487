"""The lines of a large queue file: the same as parsed anew, and known by its bytes alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from boxcar.laptop.project.project import Project, open_project
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
    assert len(json.loads((tmp_path / "kept.json").read_bytes().partition(b"\n")[2])[1][1]) == 1


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


# --- what was judged of them

JOB = """\
name: run-1
code: code
command: train.py {cfg} {out}
artifacts: [best.pth]
queues: {queue.txt: box-a}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    for name in ("train.py", "a.json", "b.json"):
        (tmp_path / "code" / name).touch()
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "queue.txt").write_text("a.json recon\nb.json recon nproc=2\n")
    return tmp_path


def shown(root: Path) -> Project:
    return open_project(root / "job.yaml", "local", despite_faults=True, shows_only=True)


def test_lines_that_were_found_sound_are_neither_made_nor_judged_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = shown(root)
    made, make = list[object](), parsed_before._line
    monkeypatch.setattr(parsed_before, "_line", lambda *of: (made.append(of), make(*of))[1])
    again = shown(root)
    assert again.known_by == first.known_by != "" and not (made or again.doubts or again.faults)
    assert [*again.plan.cells] == [*open_project(root / "job.yaml", "local").plan.cells] and made


def no_config(root: Path) -> None:
    (root / "code/b.json").unlink()


def no_code(root: Path) -> None:
    shutil.rmtree(root / "code")


def a_rule_for_nobody(root: Path) -> None:
    (root / "job.yaml").write_text(f"{JOB}cells: {{nobody: {{nproc_per_node: 2}}}}\n")


def another_command(root: Path) -> None:
    (root / "job.yaml").write_text(JOB.replace("{out}", "--epochs {epochs} {out}"))


def a_line_more(root: Path) -> None:
    with (root / "queue.txt").open("a") as file:
        file.write("c.json recon\n")


def another_line(root: Path) -> None:
    (root / "queue.txt").write_text("a.json recon\nb.json recon nproc=3\n")


def twins(root: Path) -> None:
    (root / "job.yaml").write_text(JOB.replace("box-a", "box-a, more.txt: box-b"))
    (root / "more.txt").write_text("a.json recon\n")


def of_another_name(root: Path) -> None:
    """The same config for the line, and another for the script."""
    (root / "queue.txt").write_text("\u00e9.json recon\n")
    (root / "code/\u00e9.json").touch()
    shown(root)
    (root / "code/\u00e9.json").rename(root / "code/e\u0301.json")


@pytest.mark.parametrize(
    "change",
    [
        *(no_config, no_code, a_rule_for_nobody, another_command, a_line_more, twins),
        *(another_line, of_another_name),
    ],
)
def test_whatever_changes_is_judged_at_once(root: Path, change: Callable[[Path], None]) -> None:
    before = shown(root).known_by
    change(root)
    again, anew = shown(root), open_project(root / "job.yaml", "local", despite_faults=True)
    assert (again.doubts, again.faults) == (anew.doubts, anew.faults)
    assert [*again.plan.cells] == [*anew.plan.cells]
    assert again.known_by != before and bool(again.known_by) == (
        change in (another_line, of_another_name)
    )


# --- what decides


def lie(root: Path) -> None:
    """A file says that the queue has one cell less."""
    queue = (root / "queue.txt").read_bytes()
    before = ParsedBefore(root / ".boxcar/parsed/run-1.json")
    before.parse(queue)
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
    assert users == {"project", "resolve"}
    assert not [path for path in modules if "shows_only=True" in path.read_text()]
