from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from boxcar.shared import load_child
from boxcar.shared.files.plan import TRUSTED, Artifact
from boxcar.shared.files.receipt import Finding
from boxcar.shared.load_child import Child, Manner
from onbox.machine.resident_check import ResidentCheck

REPO = Path(__file__).parents[3]
# The real checker, but that torch is empty and an artifact is what happens when it is loaded.
STAND_IN = """
import os, signal, sys, time, types
torch = types.ModuleType("torch")
torch.__version__, torch.set_num_threads = "9", lambda number: None
sys.modules["torch"] = torch
from boxcar.shared import load_child
from boxcar.shared.files.receipt import Finding
from boxcar.training.load_check import artifacts
is_resident = any(word.endswith("resident") for word in sys.orig_argv)
def look(folder, artifact, how):
    names = {"problems": (), "forked": is_resident}
    exec((folder / artifact.path).read_text(), globals(), names)
    facts = {"pid": os.getpid(), "parent": os.getppid()}
    return Finding(artifact.path, "torch", names["problems"], facts)
artifacts.look = look
"""
GOOD = [Artifact("good.pth")]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it is Linux that forks well")
Make = Callable[..., Child]


@pytest.fixture
def child(tmp_path: Path) -> Make:
    def make(more: str = "", timeout_s: float = 60.0) -> Child:
        code = tmp_path / "code"
        code.mkdir()
        (code / "sitecustomize.py").write_text(STAND_IN + more)
        (tmp_path / "good.pth").write_text("")
        return Child(sys.executable, tmp_path, f"{code}{os.pathsep}{REPO}", timeout_s)

    return make


@pytest.fixture
def check(tmp_path: Path) -> Iterator[ResidentCheck]:
    made = ResidentCheck()
    yield made
    made.close()
    until(lambda: not at_work(tmp_path))


def at_work(cwd: Path) -> list[int]:
    """What lives of a checker that was started in that folder."""
    found = []
    for path in Path("/proc").iterdir():
        try:
            if path.name.isdigit() and (path / "cwd").readlink() == cwd.resolve():
                found.append(int(path.name))
        except OSError:
            pass  # it has ended
    return [pid for pid in found if pid != os.getpid()]


def loaded_kinds(pid: int) -> list[str]:
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    return words[words.index(load_child.RESIDENT) + 1 :]


def parents(check: ResidentCheck, child: Child, folder: Path, times: int) -> list[int]:
    return [
        check.load(child, folder, GOOD).findings["good.pth"].facts["parent"] for _ in range(times)
    ]


def one(check: ResidentCheck, child: Child, folder: Path, text: str) -> Finding:
    (folder / "it.pth").write_text(text)
    return check.load(child, folder, [Artifact("it.pth")]).findings["it.pth"]


def test_checks_after_the_first_that_needs_torch_are_forked_from_one_process(
    tmp_path: Path, child: Make, check: ResidentCheck
) -> None:
    of = child()
    first, second, third = (check.load(of, tmp_path, GOOD) for _ in range(3))
    facts = [loaded.findings["good.pth"].facts for loaded in (first, second, third)]
    assert facts[0]["parent"] == os.getpid()
    assert facts[1]["parent"] == facts[2]["parent"] != os.getpid()
    assert facts[1]["pid"] != facts[2]["pid"], "what a child gives up it never gets back"
    assert first.loader == second.loader == "torch 9"
    # Both give up the same; how much memory is theirs differs.
    names = [{word.split("=")[0] for word in loaded.sandbox} for loaded in (first, third)]
    assert names[0] == names[1]
    assert "no-core-dump" in names[0]


def test_where_no_check_needs_torch_what_forks_has_none_and_later_it_has(
    tmp_path: Path, child: Make, check: ResidentCheck
) -> None:
    (tmp_path / "m.json").write_text("")
    of = child()

    def of_plain() -> Any:
        return check.load(of, tmp_path, [Artifact("m.json")]).findings["m.json"].facts

    first, second, third = of_plain(), of_plain(), of_plain()
    assert first["parent"] == os.getpid()
    assert second["parent"] == third["parent"] != os.getpid()
    assert loaded_kinds(second["parent"]) == []
    assert parents(check, of, tmp_path, 1) == [second["parent"]], "torch is imported by the child"
    [now] = parents(check, of, tmp_path, 1)
    assert loaded_kinds(now) == ["torch"]
    assert of_plain()["parent"] == now


def test_where_the_next_check_is_soon_the_first_is_forked_too(
    tmp_path: Path, child: Make, check: ResidentCheck
) -> None:
    of = child()
    first = check.load(of, tmp_path, GOOD, is_soon_again=True).findings["good.pth"].facts
    assert loaded_kinds(first["parent"]) == []
    [second] = parents(check, of, tmp_path, 1)
    assert loaded_kinds(second) == ["torch"], "which the first has needed"


def test_a_file_that_may_run_code_is_not_forked_for_though_the_next_is_soon(
    tmp_path: Path, child: Make, check: ResidentCheck
) -> None:
    files = [Artifact("good.pth", load=TRUSTED)]
    found = check.load(child(), tmp_path, files, is_soon_again=True).findings["good.pth"]
    assert found.facts["parent"] == os.getpid()


def test_what_did_not_become_ready_is_not_started_again_though_the_next_is_soon(
    tmp_path: Path, child: Make, check: ResidentCheck
) -> None:
    of = child("if is_resident: sys.exit(3)")
    for _ in range(2):
        found = check.load(of, tmp_path, GOOD, is_soon_again=True).findings["good.pth"]
        assert found.facts["parent"] == os.getpid()
    assert check._never == {of}


def test_nothing_is_kept_beside_long_trainings(tmp_path: Path, child: Make) -> None:
    now = iter([0.0, 601.0, 601.0, 1300.0, 1300.0])
    check = ResidentCheck(lambda: next(now))
    assert parents(check, child(), tmp_path, 3) == [os.getpid()] * 3
    assert not at_work(tmp_path)


ODD = """
problems = ('a lie',)
os.kill(os.getpid(), 9)
os._exit(0)
[os.write(fd, b'odd\\n') for fd in range(4)]
[os.close(fd) for fd in range(10)]; time.sleep(1000)
os.kill(os.getppid(), 9); time.sleep(1000)
"""


def test_whatever_is_odd_about_a_forked_check_a_new_interpreter_decides(
    tmp_path: Path, child: Make, check: ResidentCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_child, "_CLOSED_S", 0.1)
    of = child()
    parents(check, of, tmp_path, 1)
    for odd in ODD.strip().splitlines():
        assert parents(check, of, tmp_path, 1) != [os.getpid()], "the next one is forked again"
        found = one(check, of, tmp_path, f"if forked: {odd}")
        assert found.is_good, odd
        assert found.facts["parent"] == os.getpid(), odd


def test_a_file_that_is_bad_is_bad_by_an_interpreter_of_its_own(
    tmp_path: Path, child: Make, check: ResidentCheck
) -> None:
    of = child()
    parents(check, of, tmp_path, 2)
    (tmp_path / "bad.pth").write_text("problems = ('is bad',)")
    (tmp_path / "kills.pth").write_text("os.kill(os.getpid(), 11)")
    names = ["good.pth", "bad.pth", "kills.pth"]
    found = check.load(of, tmp_path, [Artifact(name) for name in names]).findings
    assert list(found) == names
    assert found["good.pth"].is_good
    assert found["bad.pth"].problems == ("is bad",)
    assert found["bad.pth"].facts["parent"] == os.getpid()
    assert found["kills.pth"].problems == ("loading it killed the checker (signal 11)",)


def test_a_forked_check_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, child: Make, check: ResidentCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    of, real = child(), load_child._messages
    parents(check, of, tmp_path, 2)

    def impatient(process: load_child.Process, *given: Any) -> Iterator[dict[str, Any]]:
        for message in real(process, *given):
            yield message
            if message.get("at") == "it.pth" and not isinstance(process, subprocess.Popen):
                raise TimeoutError

    monkeypatch.setattr(load_child, "_messages", impatient)
    assert one(check, of, tmp_path, "if forked: os.fork(); time.sleep(1000)").is_good
    until(lambda: not at_work(tmp_path))


def test_what_may_run_code_is_never_forked(
    tmp_path: Path, child: Make, check: ResidentCheck
) -> None:
    of = child()
    parents(check, of, tmp_path, 2)
    found = check.load(of, tmp_path, [Artifact("good.pth", load=TRUSTED)], Manner(code=("/",)))
    assert found.findings["good.pth"].facts["parent"] == os.getpid()


@pytest.mark.parametrize(
    "why",
    [
        "if is_resident: sys.exit(3)",
        "import threading\nsleep = threading.Thread(target=time.sleep, args=(99,), daemon=True)\n"
        "if is_resident: sleep.start()",
    ],
)
def test_where_none_can_be_kept_each_check_has_its_own_interpreter(
    tmp_path: Path, child: Make, check: ResidentCheck, why: str
) -> None:
    assert parents(check, child(why), tmp_path, 3) == [os.getpid()] * 3


def test_one_that_was_idle_ends_by_itself_and_nothing_is_missed(
    tmp_path: Path, child: Make, check: ResidentCheck
) -> None:
    of = child("load_child.IDLE_S = 0.0")
    assert len(parents(check, of, tmp_path, 3)) == 3
    until(lambda: check._resident is None or not check._resident.lives)
    assert len(parents(check, of, tmp_path, 1)) == 1


def test_it_ends_with_its_agent(tmp_path: Path, child: Make, check: ResidentCheck) -> None:
    parents(check, child(), tmp_path, 2)
    assert check._resident
    assert at_work(tmp_path)
    check._resident._asks.close()  # as the kernel does for an agent that was killed
    until(lambda: check._resident is None or not check._resident.lives)


def test_another_releases_checker_is_another_process(
    tmp_path: Path, child: Make, check: ResidentCheck
) -> None:
    of = child()
    other = Child(of.python, of.cwd, f"{of.python_path}{os.pathsep}/other", of.timeout_s)
    mine = parents(check, of, tmp_path, 2)[1]
    theirs = parents(check, other, tmp_path, 2)
    assert theirs[0] == os.getpid()
    assert theirs[1] not in (mine, os.getpid())
    with pytest.raises(ProcessLookupError):
        os.kill(mine, signal.SIG_DFL)


def test_a_checkpoint_that_was_cut_is_not_found_good_by_a_forked_check(
    tmp_path: Path, check: ResidentCheck
) -> None:
    torch = pytest.importorskip("torch")
    for name in ("good.pth", "cut.pth"):
        torch.save({"w": torch.ones(3000)}, tmp_path / name)
    os.truncate(tmp_path / "cut.pth", 9000)
    of = Child(sys.executable, tmp_path, str(REPO))
    files = [Artifact("good.pth"), Artifact("cut.pth")]
    found = check._by_resident(of, tmp_path, files, load_child.PLAIN)
    assert list(found.findings) == ["good.pth"]
    assert found.loader.startswith("torch ")
