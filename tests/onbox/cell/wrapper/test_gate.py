"""A Python that waits at its gate, beside one that is started at its turn."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from boxcar.shared.disk import lock
from onbox.cell.wrapper import gate
from onbox.cell.wrapper.gate_proof import GateProof
from onbox.cell.wrapper.launcher import Launcher
from onbox.cell.wrapper.prepared import Prepared
from onbox.machine import process

# All that a script could see of how it was started.
SCRIPT = """\
import json, os, signal, sys
fds = sorted(os.listdir("/proc/self/fd"))[:-1]
main = sys.modules["__main__"]
flow = {name: [stream.encoding, stream.errors, stream.line_buffering, stream.write_through,
               stream.isatty(), stream.fileno()]
        for name, stream in (("out", sys.stdout), ("err", sys.stderr), ("in", sys.stdin))}
print(json.dumps({
    "argv": sys.argv, "orig_argv": sys.orig_argv, "path": sys.path, "env": dict(os.environ),
    "modules": sorted(sys.modules), "cwd": os.getcwd(), "flags": str(sys.flags),
    "executable": sys.executable, "prefix": sys.prefix, "fds": fds,
    "leads": [os.readlink(f"/proc/self/fd/{name}") for name in fds],
    "main": [main.__file__, str(main.__spec__ and main.__spec__.name), sorted(vars(main))],
    "finders": sorted(sys.path_importer_cache), "flow": flow, "nice": os.nice(0),
    "signals": [str(signal.getsignal(number)) for number in signal.valid_signals()],
    "session": os.getsid(0) == os.getpid(), "read": sys.stdin.read(), "fault": sys.flags.dev_mode,
}))
sys.exit(7)
"""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    (folder / "lib").mkdir(parents=True)
    (folder / "train.py").write_text(SCRIPT)
    return folder


@pytest.fixture
def archive(staged: Path) -> Path:
    return staged / gate.ARCHIVE


@pytest.fixture
def made(
    archive: Path, code: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., Prepared]]:
    """One that waits at its gate, for a script in the code."""
    monkeypatch.chdir(code)
    there: list[Prepared] = []

    def make(words: tuple[str, ...], environ: dict[str, str], *, comes: bool = True) -> Prepared:
        one = Prepared(f"{tmp_path}:cell:1")
        there.append(one)
        one.argv = words
        one.expect(words, environ, str(archive))
        if comes:
            until(lambda: is_at_gate(one._pid))
        return one

    yield make
    for one in there:
        if process.start_time(one._pid):
            os.kill(one._pid, signal.SIGKILL)


def is_at_gate(pid: int) -> bool:
    """Whether it waits for a message, and no longer in the program that became it."""
    at = Path(f"/proc/{pid}")
    if gate.GATE.encode() not in (at / "environ").read_bytes():
        return False
    waits_in = (at / "wchan").read_text()
    sleeps = (at / "stat").read_text().rpartition(")")[2].split()[0] == "S"
    return sleeps and (waits_in in ("", "0") or "unix_stream" in waits_in)  # "0": nobody may see it


def ended(one: Launcher, environ: dict[str, str], log: Path) -> tuple[int, str]:
    with log.open("ab") as file:
        pid = one.become(environ, file.fileno())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), log.read_text()


@pytest.fixture
def both(made, tmp_path: Path) -> Callable[..., tuple[tuple[int, str], tuple[int, str]]]:
    """What a command ends with and logs, started at its turn and at its gate before."""

    def both(*words: str, **variables: str) -> Any:
        log = tmp_path / "log"
        argv = (sys.executable, "-u", *words)
        environ = {"PATH": os.environ["PATH"], "BOXCAR_ATTEMPT_ID": "own:cell:1", **variables}
        bare = ended(Launcher(argv, f"{tmp_path}:bare:1"), environ, log)
        log.unlink()
        return bare, ended(made(argv, environ), environ, log)

    return both


def seen(told: tuple[int, str]) -> Any:
    assert told[0] == 7, told
    return json.loads(told[1].splitlines()[-1])


def of_a_start(bare: Any, gated: Any) -> None:
    """Nothing differs but a module of Python's own by which it was let in."""
    assert set(gated["modules"]) - set(bare["modules"]) <= {"_socket"}
    gated["modules"] = bare["modules"]
    assert gated == bare


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"PYTHONPATH": "/somewhere/lib.zip:/else/where"},
        {"PYTHONPATH": "lib:.:lib:"},  # as people write it: from where it is started
        {"PYTHONPATH": "", "LANG": "C", "A": "b=c\nd"},
        {"PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1", "PYTHONFAULTHANDLER": "1"},
        {"PYTHONUTF8": "1", "PYTHONIOENCODING": "latin-1", "PYTHONUNBUFFERED": "1"},
    ],
    ids=lambda variables: " ".join(variables) or "nothing",
)
def test_a_script_sees_what_it_would_have_seen(both, variables: dict[str, str]) -> None:
    of_a_start(*map(seen, both("train.py", "lr=0.1", "", "a b", **variables)))


def test_a_module_sees_what_it_would_have_seen(both) -> None:
    of_a_start(*map(seen, both("-m", "train", "x")))


def test_a_script_by_its_whole_path_sees_what_it_would_have_seen(both, code: Path) -> None:
    of_a_start(*map(seen, both(str(code / "train.py"))))


def test_the_training_layers_archive_is_there_and_read_before(both, archives, tmp_path) -> None:
    layer = tmp_path / archives.training
    layer.write_bytes(archives.files[archives.training])
    bare, gated = map(seen, both("train.py", PYTHONPATH=f"{layer}:lib"))
    of_a_start(bare, gated)
    assert str(layer) in gated["finders"]


@pytest.mark.parametrize("module", ["sitecustomize", "usercustomize"])
def test_what_somebody_customizes_is_done_at_its_turn(both, code: Path, module: str) -> None:
    said = f"import os, sys\nos.environ['CUSTOM'] = sys.path[0]\nprint({module!r}, len(sys.path))\n"
    (code / f"lib/{module}.py").write_text(said)
    bare, gated = both("train.py", PYTHONPATH="lib", PYTHONDONTWRITEBYTECODE="1")
    of_a_start(seen(bare), seen(gated))
    if module == "sitecustomize":
        assert gated[1].startswith("sitecustomize")
        assert seen(gated)["env"]["CUSTOM"] == str(code / "lib")


def test_one_that_fails_says_so_as_ever(both, code: Path) -> None:
    (code / "lib/sitecustomize.py").write_text("raise ValueError('custom')")
    bare, gated = both("train.py", PYTHONPATH="lib", PYTHONDONTWRITEBYTECODE="1")
    assert bare[1].splitlines()[:2] == gated[1].splitlines()[:2]
    assert "ValueError: custom" in gated[1]


@pytest.mark.parametrize("script", ["raise ValueError('no')", "a b", "import os; os.abort()"])
def test_a_script_that_fails_ends_and_says_so_as_ever(both, code: Path, script: str) -> None:
    (code / "train.py").write_text(f"def f():\n    {script}\nf()\n")
    bare, gated = both("train.py")
    assert gated == bare


def test_a_script_that_is_not_there_is_said_so_as_ever(both) -> None:
    bare, gated = both("no.py")
    assert gated == bare
    assert gated[0] == 2


def test_nothing_of_the_project_is_read_before_its_turn(made, code: Path, tmp_path: Path) -> None:
    (code / "lib/sitecustomize.py").write_text("raise ValueError")
    environ = {"PYTHONPATH": "lib"}
    argv = (sys.executable, "-u", "train.py")
    one = made(argv, environ)
    (code / "lib/sitecustomize.py").unlink()
    (code / "train.py").write_text("import late; late.end()")
    (code / "lib/late.py").write_text("import sys\ndef end(): sys.exit(5)")
    assert ended(one, environ, tmp_path / "log") == (5, "")


def test_a_folder_that_was_made_anew_meanwhile_is_the_one_it_works_in(
    made, code: Path, tmp_path: Path
) -> None:
    one = made((sys.executable, "-u", "train.py"), {})
    code.rename(tmp_path / "before")
    code.mkdir()
    (code / "train.py").write_text("import os; print(os.listdir())")
    assert ended(one, {}, tmp_path / "log") == (0, "['train.py']\n")


def test_one_whose_packages_have_changed_meanwhile_is_started_anew(
    made, tmp_path: Path, code: Path
) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    python, (site,) = str(venv / "bin/python"), venv.glob("lib/python3*/site-packages")
    (code / "train.py").write_text("import new")
    one = made((python, "-u", "train.py"), {})
    before = one._pid
    (site / "new.pth").write_text(f"{code}/lib\n")
    (code / "lib/new.py").write_text("print('installed')")
    with (tmp_path / "log").open("ab") as log:
        pid = one.become({}, log.fileno())
    assert os.waitpid(pid, 0)[1] == 0
    assert (tmp_path / "log").read_text() == "installed\n"
    assert pid != before


@pytest.mark.parametrize(
    ("words", "environ"),
    [
        (("train.py", "a"), {"A": "1"}),
        (("train.py", "b"), {"A": "2"}),
        (("-c", "pass"), {"A": "1"}),
    ],
)
def test_one_that_becomes_another_cell_than_was_expected_is_started_anew(
    made, code: Path, tmp_path: Path, words: tuple[str, ...], environ: dict[str, str]
) -> None:
    (code / "train.py").write_text("import os, sys; print(*sys.argv[1:], os.environ['A'])")
    one = made((sys.executable, "-u", "train.py", "b"), {"A": "1"})
    one.argv = (sys.executable, "-u", *words)
    before = one._pid
    with (tmp_path / "log").open("ab") as log:
        pid = one.become(environ, log.fileno())
    assert pid != before
    assert process.start_time(before) is None
    assert os.waitpid(pid, 0)[1] == 0
    said = "" if "-c" in words else f"{words[-1]} {environ['A']}\n"
    assert (tmp_path / "log").read_text() == said


def test_another_that_is_expected_then_comes_to_its_gate_too(
    made, archive: Path, code: Path, tmp_path: Path
) -> None:
    (code / "train.py").write_text("import sys; print(*sys.argv[1:])")
    one = made((sys.executable, "-u", "train.py", "a"), {})
    before = one._pid
    one.argv = (sys.executable, "-u", "train.py", "b")
    one.expect(one.argv, {}, str(archive))
    assert process.start_time(before) is None
    until(lambda: is_at_gate(one._pid))
    waits = one._pid
    one.expect(one.argv, {}, str(archive))
    assert one._pid == waits
    assert ended(one, {}, tmp_path / "log") == (0, "b\n")


def test_who_was_let_in_holds_the_lock_of_its_log(made, code: Path, tmp_path: Path) -> None:
    (code / "train.py").write_text("import time; print('runs'); time.sleep(3600)")
    log = tmp_path / "log"
    one = made((sys.executable, "-u", "train.py"), {})
    fd = lock.try_hold(log)
    pid = one.become({}, fd)
    os.close(fd)
    until(lambda: log.read_text() == "runs\n")
    assert lock.is_held(log)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert not lock.is_held(log)


@pytest.mark.parametrize("comes", [True, False])
def test_one_that_is_killed_or_fails_before_its_gate_costs_nothing(
    made, code: Path, tmp_path: Path, comes: bool
) -> None:
    (code / "train.py").write_text("print('runs')")
    one = made((sys.executable, "-u", "train.py"), {}, comes=comes)
    os.kill(one._pid, signal.SIGKILL)
    assert ended(one, {}, tmp_path / "log") == (0, "runs\n")


def test_one_that_is_not_needed_leaves_no_process(made) -> None:
    before = process.descendants(os.getpid())
    one = made((sys.executable, "-u", "train.py"), {})
    one.end()
    assert process.descendants(os.getpid()) == before


def test_one_whose_wrapper_is_gone_ends_without_its_turn(made) -> None:
    one = made((sys.executable, "-u", "train.py"), {})
    one._ours.close()
    assert os.waitstatus_to_exitcode(os.waitpid(one._pid, 0)[1]) == gate.NOT_LET_IN


def test_a_message_without_a_log_lets_nobody_in(made, code: Path) -> None:
    one = made((sys.executable, "-u", "train.py"), {})
    one._ours.sendall(b"\0")
    assert os.waitstatus_to_exitcode(os.waitpid(one._pid, 0)[1]) == gate.NOT_LET_IN
    one._ours = socket.socketpair()[0]


def test_nothing_is_written_beside_it(both, staged: Path) -> None:
    before = sorted(staged.rglob("*"))
    both("train.py")
    assert sorted(staged.rglob("*")) == before


# --- who comes there


def known(python: str, archive: Path) -> bool:
    proof = GateProof()
    proof.holds(python, archive, os.environ)
    if proof._asked:
        proof._asked.wait()
    return proof.holds(python, archive, os.environ)


def named_python(folder: Path, text: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_python_is_known_to_come_once_it_has(archive: Path, tmp_path: Path) -> None:
    assert not GateProof().holds(sys.executable, archive, os.environ)
    assert known(sys.executable, archive)
    assert known(named_python(tmp_path, f'exec {sys.executable} "$@"'), archive)


def test_a_python_of_another_version_comes_too(archive: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(archive) as own, zipfile.ZipFile(other, "w") as made:
        assert set(own.namelist()) == {"sitecustomize.py", "sitecustomize.pyc"}
        made.writestr("sitecustomize.py", own.read("sitecustomize.py"))
        made.writestr("sitecustomize.pyc", b"\x01\x02\r\n" + own.read("sitecustomize.pyc")[4:])
    assert known(sys.executable, other)


@pytest.mark.parametrize(
    "text",
    [
        f'exec {sys.executable} -I "$@"',
        f'exec {sys.executable} -S "$@"',
        f'unset PYTHONPATH; exec {sys.executable} "$@"',
        "exit 86x",
        "exec /no/such/python",
    ],
)
def test_what_passes_its_gate_by_is_not(archive: Path, tmp_path: Path, text: str) -> None:
    assert not known(named_python(tmp_path, text), archive)


def test_what_is_not_there_is_not(archive: Path, tmp_path: Path) -> None:
    assert not known("/no/such/python", archive)
    assert not known(sys.executable, tmp_path / "none.zip")


def test_a_python_that_was_changed_is_asked_again(archive: Path, tmp_path: Path) -> None:
    python = named_python(tmp_path, f'exec {sys.executable} "$@"')
    proof = GateProof()
    proof.holds(python, archive, os.environ)
    until(lambda: proof.holds(python, archive, os.environ))
    named_python(tmp_path, f'exec {sys.executable} -I "$@"')
    assert not proof.holds(python, archive, os.environ)
    assert proof._asked
    proof._asked.wait()
    assert not proof.holds(python, archive, os.environ)
    proof.close()
