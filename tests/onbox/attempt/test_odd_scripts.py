"""Scripts that do to their own process what a runner may not expect, under each kind of launcher,
and launchers that are not there. What a launcher does stands in small ones of our own (begun.py).
"""

from __future__ import annotations

import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from begun import DIES_AT_ONCE, HANDS_ON, ONE_BY_ONE, Begun
from specs import make_spec
from waiting import until

from onbox.machine import process

# The text of a launcher; None: what Boxcar itself starts.
LAUNCHERS: dict[str, tuple[str | None, int]] = {
    "python": (None, 1),
    "none": (None, 1),
    "torchrun": (HANDS_ON, 2),
    "accelerate": (DIES_AT_ONCE, 1),
    "deepspeed": (ONE_BY_ONE, 2),
}
_HEAD = """\
import os, sys, time
name = os.environ.get("RANK", "0")
def ends(code):
    open(f"ended{name}", "w").close()
    sys.exit(code)
"""
SCRIPTS = {
    "executes itself again": """\
if "again" not in sys.argv:
    os.execv(sys.executable, [sys.executable, *sys.argv, "again"])
ends(7)
""",
    "changes its session": """\
if os.getsid(0) != os.getpid():  # without a launcher it leads one already
    os.setsid()
home = os.getcwd()
os.chdir("/")
os.environ.clear()
os.chdir(home)
ends(7)
""",
    "closes its descriptors": """\
sys.stdout.flush()
os.closerange(0, 64)
open(f"ended{name}", "w").close()
os._exit(7)
""",
    "has a child that outlives its own child": """\
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(0.2)
        os._exit(0)
    os._exit(0)
os.wait()
ends(7)
""",
}
# As `nohup ... &` and most daemons: all of it goes on in what nobody waits for.
DAEMON = """\
if os.fork() == 0:
    os.setsid()
    os.closerange(0, 64)
    if os.fork() == 0:
        with open(f"daemon{name}.part", "w") as file:
            file.write(str(os.getpid()))
        os.rename(f"daemon{name}.part", f"daemon{name}")
        time.sleep(600)
    os._exit(0)
while not os.path.exists(f"daemon{name}"):
    time.sleep(0.01)
ends(0)
"""


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    begun: list[Begun] = []
    monkeypatch.setattr("onbox.attempt.watch.LEFTOVER_GRACE_S", 0.3)

    def of(kind: str, script: str) -> Begun:
        text, ranks = LAUNCHERS[kind]
        (tmp_path / "script.py").write_text(_HEAD + script)
        words = ("script.py",) if kind == "python" else (sys.executable, "script.py")
        argv = (sys.executable, str(tmp_path / "launcher"), str(tmp_path / "script.py"))
        (tmp_path / "launcher").write_text(text or "")
        spec = make_spec(tmp_path, launcher=kind, words=words, ranks=ranks)
        begun.append(Begun(tmp_path, spec, argv=argv if text else ()))
        return begun[-1]

    yield of
    for one in begun:
        one.end()


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=[*SCRIPTS])
@pytest.mark.parametrize("kind", LAUNCHERS)
def test_an_odd_script_is_seen_to_its_end_and_its_code_arrives(begin, tmp_path, kind, script):
    done = begin(kind, script).ended()
    assert (done.rc, done.ranks_alive, done.ranks_formed) == (7, None, None)
    for rank in range(LAUNCHERS[kind][1]):
        assert (tmp_path / f"ended{rank}").exists()


@pytest.mark.parametrize("kind", LAUNCHERS)
def test_what_a_script_sends_to_the_background_ends_with_its_attempt(begin, tmp_path, kind):
    assert begin(kind, DAEMON).ended().rc == 0
    for rank in range(LAUNCHERS[kind][1]):
        pid = int((tmp_path / f"daemon{rank}").read_text())
        until(lambda pid=pid: process.start_time(pid) is None)


@pytest.mark.parametrize("kind", LAUNCHERS)
def test_a_launcher_that_is_not_there_is_recorded_as_not_found(tmp_path, kind):
    words = ("no-such-program",) if kind == "none" else ("script.py",)
    one = Begun(tmp_path, make_spec(tmp_path, launcher=kind, words=words, python="/no/such/python"))
    assert one.ended().rc == 127
    assert (words[0] if kind == "none" else "/no/such/python") in one.log


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python without any library."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    return str(folder / "bin" / "python")


@pytest.mark.parametrize("kind", ["torchrun", "accelerate", "deepspeed"])
def test_a_launchers_package_that_is_not_there_is_named_in_the_log(tmp_path, kind, bare):
    one = Begun(tmp_path, make_spec(tmp_path, launcher=kind, python=bare))
    assert one.ended().rc == 1
    assert "No module named" in one.log or "ModuleNotFoundError" in one.log
