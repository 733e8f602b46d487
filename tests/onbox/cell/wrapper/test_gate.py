"""A Python that waits at its gate, beside one that is started at its turn."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import site
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from boxcar.shared.disk import lock
from onbox.cell.wrapper import gate, gate_proof, prepared
from onbox.cell.wrapper.gate_proof import GateProof
from onbox.cell.wrapper.launcher import Launcher
from onbox.cell.wrapper.prepared import Prepared
from onbox.machine import process

LONG_S = 60.0
SEND_OPEN = prepared.send_open
# All that a script could see of how it was started.
SCRIPT = """\
import faulthandler, json, os, signal, sys
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
    "session": os.getsid(0) == os.getpid(), "read": sys.stdin.read(),
    "fault": faulthandler.is_enabled(),
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

    def make(
        words: tuple[str, ...],
        environ: dict[str, str],
        *,
        comes: bool = True,
        is_any_alike: bool = False,
    ) -> Prepared:
        one = Prepared(f"{tmp_path}:cell:1")
        there.append(one)
        one.argv = words
        one.expect(words, environ, str(archive), is_any_alike=is_any_alike)
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


def ended(
    one: Launcher, environ: dict[str, str], log: Path, *, is_let_in: bool | None = None
) -> tuple[int, str]:
    """How it ended, and its log. `is_let_in`: whether it has to be the one that waited."""
    waited = one._pid if isinstance(one, Prepared) else None
    with log.open("ab") as file:
        one.call(environ, file.fileno())
        pid = one.become(environ, file.fileno())
    assert is_let_in in (None, pid == waited)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), log.read_text()


@pytest.fixture
def both(made, tmp_path: Path) -> Callable[..., tuple[tuple[int, str], tuple[int, str]]]:
    """What a command ends with and logs, started at its turn and at its gate before."""

    def both(*words: str, is_let_in: bool = True, **variables: str) -> Any:
        log = tmp_path / "log"
        argv = (sys.executable, "-u", *words)
        environ = {"PATH": os.environ["PATH"], "BOXCAR_ATTEMPT_ID": "own:cell:1", **variables}
        bare = ended(Launcher(argv, f"{tmp_path}:bare:1"), environ, log)
        log.unlink()
        return bare, ended(made(argv, environ), environ, log, is_let_in=is_let_in)

    return both


def seen(told: tuple[int, str]) -> Any:
    assert told[0] == 7, told
    return json.loads(told[1].splitlines()[-1])


def of_a_start(bare: Any, gated: Any) -> None:
    """Nothing differs but a module of Python's own by which it was let in."""
    gated["modules"] = [name for name in gated["modules"] if name != "_socket"]
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


# --- with other words than it waits with

BESIDE = ("train.py", "configs/a.json", "lr=0.1")
LATER = {"BOXCAR_CELL": "b", "BOXCAR_OUT": "/b/out", "BOXCAR_RESUME": "", "PYTHONPATH": "lib"}


@pytest.fixture
def later(made, tmp_path: Path) -> Callable[..., tuple[tuple[int, str], tuple[int, str]]]:
    """The same where it waited beside another cell, with that one's words and variables."""

    def later(*words: str, before: tuple[str, ...] = BESIDE, **variables: str) -> Any:
        log, start = tmp_path / "log", (sys.executable, "-u")
        common = {"PATH": os.environ["PATH"], "A": "1"}
        environ = common | LATER | variables
        bare = ended(Launcher((*start, *words), f"{tmp_path}:bare:1"), environ, log)
        log.unlink()
        of_beside = {"BOXCAR_CELL": "a", "BOXCAR_OUT": "/a/out", "BOXCAR_OF_A": "1"}
        one = made((*start, *before), common | of_beside, is_any_alike=True)
        one.argv = (*start, *words)
        return bare, ended(one, environ, log, is_let_in=True)

    return later


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("x",),
        ("", ""),
        ("configs/b.json", "lr=0.2", "note=a b", "", "\udce9 é"),
        tuple(f"a.key={number}" for number in range(200)),
    ],
    ids=len,
)
def test_a_script_sees_its_own_words_and_not_those_of_the_cell_beside(
    later, words: tuple[str, ...]
) -> None:
    of_a_start(*map(seen, later("train.py", *words)))


def test_a_module_sees_its_own_words_too(later) -> None:
    of_a_start(*map(seen, later("-m", "train", "b", before=("-m", "train"))))


def test_it_is_shown_under_no_cells_words_and_variables(made, tmp_path: Path) -> None:
    start = (sys.executable, "-u", "train.py")
    one = made((*start, "a"), {"BOXCAR_CELL": "a"}, is_any_alike=True)
    assert process.words(one._pid) == [*start, "..."]
    assert "BOXCAR_CELL" not in process.environment(one._pid)
    assert process.with_cookie(f"{tmp_path}:cell:1") == [one._pid]
    one.end()


@pytest.mark.parametrize(
    ("words", "environ"),
    [
        (("other.py", "b"), {"A": "1"}),
        (("-m", "train", "b"), {"A": "1"}),
        (("train.py", "b"), {"A": "2"}),
        (("train.py", "b"), {"A": "1", "LC_ALL": "C"}),
        (("train.py", "b"), {}),
        (("train.py", "b"), {"A": "1", "PYTHONPATHS": "lib"}),
    ],
)
def test_a_cell_that_is_not_like_the_one_beside_has_a_python_of_its_own(
    made, code: Path, tmp_path: Path, words: tuple[str, ...], environ: dict[str, str]
) -> None:
    for name in ("train.py", "other.py"):
        (code / name).write_text("import os, sys; print(*sys.argv[1:], os.environ.get('A'))")
    one = made((sys.executable, "-u", "train.py", "a"), {"A": "1"}, is_any_alike=True)
    one.argv, before = (sys.executable, "-u", *words), one._pid
    told = ended(one, environ, tmp_path / "log", is_let_in=False)
    assert told == (0, f"{words[-1]} {environ.get('A')}\n")
    assert process.start_time(before) is None


def test_a_command_without_a_script_is_like_none(made, code: Path, tmp_path: Path) -> None:
    one = made((sys.executable, "-u", "train.py", "a"), {}, is_any_alike=True)
    one.argv = (sys.executable, "-u")
    assert ended(one, {}, tmp_path / "log", is_let_in=False) == (0, "")


def test_the_same_cell_once_more_has_its_words(made, code: Path, tmp_path: Path) -> None:
    (code / "train.py").write_text("import sys; print(*sys.argv[1:])")
    one = made((sys.executable, "-u", "train.py", "a"), {}, is_any_alike=True)
    assert ended(one, {}, tmp_path / "log", is_let_in=True) == (0, "a\n")


def test_what_waits_for_any_cell_stays_for_one_that_is_expected_then(
    made, archive: Path, code: Path, tmp_path: Path
) -> None:
    (code / "train.py").write_text("import os, sys; print(*sys.argv[1:], os.environ['A'])")
    start = (sys.executable, "-u", "train.py")
    one = made((*start, "a"), {"A": "1"}, is_any_alike=True)
    waits, one.argv = one._pid, (*start, "b")
    one.expect(one.argv, {"A": "1"}, str(archive), is_any_alike=False)
    assert one._pid == waits
    one.expect(one.argv, {"A": "2"}, str(archive), is_any_alike=False)
    assert process.start_time(waits) is None
    assert ended(one, {"A": "2"}, tmp_path / "log") == (0, "b 2\n")


def test_words_are_told_late_also_before_python_3_10(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["train.py", "..."])
    monkeypatch.delattr(sys, "orig_argv")
    gate._take_words(["a", "b"])
    assert sys.argv == ["train.py", "a", "b"]


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


@pytest.fixture
def venv(tmp_path: Path) -> tuple[str, Path]:
    """Its Python, and where its packages lie."""
    folder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    return str(folder / "bin/python"), packages


def is_started_anew(one: Prepared, environ: dict[str, str], log: Path) -> bool:
    """Whether another is in the place of the one that waited; it ends well."""
    before = one._pid
    with log.open("ab") as file:
        one.call(environ, file.fileno())
        pid = one.become(environ, file.fileno())
    assert os.waitpid(pid, 0)[1] == 0
    return pid != before


@pytest.mark.parametrize("is_there", [True, False])
def test_one_whose_packages_have_changed_meanwhile_is_started_anew(
    made, venv, tmp_path: Path, code: Path, is_there: bool
) -> None:
    python, packages = venv
    path = packages / "new.pth"
    if is_there:
        path.write_text("")
        os.utime(path, (1, 1))
    (code / "train.py").write_text("import new")
    (code / "lib/new.py").write_text("print('installed')")
    one = made((python, "-u", "train.py"), {})
    with path.open("a") as file:  # which changes no folder where it was there
        file.write(f"{code}/lib\n")
    assert is_started_anew(one, {}, tmp_path / "log")
    assert (tmp_path / "log").read_text() == "installed\n"


def test_packages_of_a_user_that_had_none_are_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "USER_SITE", f"{tmp_path}/lib/python3/site-packages")
    for is_enabled in (False, True):
        monkeypatch.setattr(site, "ENABLE_USER_SITE", is_enabled)
        found = gate._found()
        assert gate.is_unchanged(found)
        (tmp_path / f"lib/python3/site-packages/{is_enabled}").mkdir(parents=True)
        assert gate.is_unchanged(found) is not is_enabled
        shutil.rmtree(tmp_path / "lib")


def until_at_gate_or_over(one: Prepared) -> bool:
    """Whether it came."""
    until(lambda: is_over(one._pid) or is_at_gate(one._pid))
    return not is_over(one._pid)


def is_over(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("variable", ["PYTHONWARNINGS=none", "LD_PRELOAD=/no/such.so"])
def test_what_is_said_at_its_start_is_in_the_log(both, variable: str) -> None:
    name, _, value = variable.partition("=")
    bare, gated = both("train.py", is_let_in=False, **{name: value})
    assert bare[1].splitlines()[:-1] == gated[1].splitlines()[:-1] != []
    of_a_start(seen(bare), seen(gated))


HOOK = "import os; os.environ['HOOKED'] = os.environ.get('PYTHONPATH', '')\n"


def test_a_hook_beside_the_packages_runs_at_its_turn(made, venv, code: Path, tmp_path) -> None:
    python, packages = venv
    (packages / "theirs.pth").write_text(HOOK)
    (code / "train.py").write_text("import os; print(os.environ['HOOKED'])")
    environ = {"PYTHONPATH": str(code / "lib")}
    one = made((python, "-u", "train.py"), environ, comes=False)
    assert not until_at_gate_or_over(one)
    assert is_started_anew(one, environ, tmp_path / "log")
    assert (tmp_path / "log").read_text() == f"{code / 'lib'}\n"


def test_an_interpreter_within_it_finds_the_projects_modules(both, code: Path) -> None:
    (code / "lib/mine.py").write_text("")
    (code / "train.py").write_text(
        "import importlib, sys\n"
        "name = '_xxsubinterpreters' if sys.version_info < (3, 13) else '_interpreters'\n"
        "of = importlib.import_module(name)\n"
        "print(of.run_string(of.create(), 'import mine, sys; print(sys.path)'))\n"
    )
    bare, gated = both("train.py", PYTHONPATH=str(code / "lib"))
    assert gated == bare
    assert bare[0] == 0 and str(code / "lib") in bare[1]


def test_a_loader_that_takes_out_its_module_after_an_error_finds_it(archive: Path) -> None:
    """zipimport did so in Python 3.8 and 3.9, and said KeyError in the error's place."""
    script = (
        "import sys, types, zipimport\n"
        f"archive = {str(archive)!r}\n"
        "sys.path.insert(0, archive)\n"
        "own = types.ModuleType('sitecustomize')\n"
        "own.__file__ = archive + '/sitecustomize.py'\n"
        "sys.modules['sitecustomize'] = own\n"
        "try:\n"
        "    exec(zipimport.zipimporter(archive).get_source('sitecustomize'), vars(own))\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error.name, sys.modules['sitecustomize'] is own)\n"
    )
    words = [sys.executable, "-I", "-S", "-c", script]
    said = subprocess.run(words, capture_output=True, text=True, check=True)
    assert said.stdout == "sitecustomize True\n"


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
        one.call(environ, log.fileno())
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
    one.expect(one.argv, {}, str(archive), is_any_alike=False)
    assert process.start_time(before) is None
    until(lambda: is_at_gate(one._pid))
    waits = one._pid
    one.expect(one.argv, {}, str(archive), is_any_alike=False)
    assert one._pid == waits
    assert ended(one, {}, tmp_path / "log") == (0, "b\n")


def test_who_was_let_in_holds_the_lock_of_its_log(made, code: Path, tmp_path: Path) -> None:
    (code / "train.py").write_text("import time; print('runs'); time.sleep(3600)")
    log = tmp_path / "log"
    one = made((sys.executable, "-u", "train.py"), {})
    fd = lock.try_hold(log)
    one.call({}, fd)
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


def test_one_that_has_gone_on_at_once_is_not_taken_for_one_that_has_not(
    made, code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or its script would run, and be killed, and run once more."""
    (code / "train.py").write_text("import os; os.write(1, b'runs\\n')")
    one, log = made((sys.executable, "-u", "train.py"), {}), tmp_path / "log"

    class Slow:
        """Who is back from saying it only when it has been done."""

        def __init__(self, own: socket.socket) -> None:
            self._own = own

        def __getattr__(self, name: str) -> Any:
            return getattr(self._own, name)

        def sendall(self, data: bytes) -> None:
            self._own.sendall(data)
            if data == gate.GO:
                until(lambda: log.read_text() == "runs\n")

    monkeypatch.setattr(prepared, "send_open", lambda ours, fd: SEND_OPEN(ours._own, fd))
    one._ours = Slow(one._ours)
    assert ended(one, {}, log, is_let_in=True) == (0, "runs\n")


def test_one_that_is_too_late_does_not_run(made, code: Path, tmp_path: Path) -> None:
    (code / "train.py").write_text("print('runs')")
    one, log = made((sys.executable, "-u", "train.py"), {}), tmp_path / "log"
    one._ours.settimeout(0.01)
    os.kill(one._pid, signal.SIGSTOP)
    with log.open("ab") as file:
        one.call({}, file.fileno())
        assert one._is_called
        assert not one._is_taken(lambda: one._ours.sendall(gate.GO))
    os.kill(one._pid, signal.SIGCONT)
    assert os.waitstatus_to_exitcode(os.waitpid(one._pid, 0)[1]) == gate.NOT_LET_IN
    assert log.read_text() == ""


def test_one_that_has_said_so_in_time_runs_whoever_hears_it_late(
    made, code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code / "train.py").write_text("print('runs')")
    one, log = made((sys.executable, "-u", "train.py"), {}), tmp_path / "log"

    class Late:
        """Whose first look at the answer comes too late."""

        def __init__(self, own: socket.socket) -> None:
            self._own, self._looks = own, 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self._own, name)

        def recv(self, count: int) -> bytes:
            self._looks += 1
            if self._looks == 1:
                until(lambda: log.read_text() == "runs\n")
                raise TimeoutError
            return self._own.recv(count)

    monkeypatch.setattr(prepared, "send_open", lambda ours, fd: SEND_OPEN(ours._own, fd))
    one._ours = Late(one._ours)
    assert ended(one, {}, log, is_let_in=True) == (0, "runs\n")


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
    one._ours.sendall(b"\0" + prepared.spelled((), {}))
    assert os.waitstatus_to_exitcode(os.waitpid(one._pid, 0)[1]) == gate.NOT_LET_IN
    one._ours = socket.socketpair()[0]


def test_nothing_is_written_beside_it(both, staged: Path) -> None:
    before = sorted(staged.rglob("*"))
    both("train.py")
    assert sorted(staged.rglob("*")) == before


# --- who comes there


def known(python: str, archive: Path, environ: Mapping[str, str] = os.environ) -> bool:
    proof = GateProof()
    holds = proof.holds(python, archive, environ, LONG_S)
    proof.close()
    return holds


def named_python(folder: Path, text: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_python_is_known_to_come_once_it_has(archive: Path, venv) -> None:
    assert known(sys.executable, archive)
    assert known(venv[0], archive)
    assert known("python", archive, {"PATH": str(Path(venv[0]).parent)})


def test_a_python_of_another_version_comes_too(archive: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(archive) as own, zipfile.ZipFile(other, "w") as made:
        assert set(own.namelist()) == {"sitecustomize.py", "sitecustomize.pyc"}
        made.writestr("sitecustomize.py", own.read("sitecustomize.py"))
        made.writestr("sitecustomize.pyc", b"\x01\x02\r\n" + own.read("sitecustomize.pyc")[4:])
    assert known(sys.executable, other)


@pytest.mark.parametrize("text", ['"$@"', '-I "$@"'])
def test_no_script_that_starts_a_python_is_started_early(
    archive: Path, tmp_path: Path, text: str
) -> None:
    """Not even to be asked: it may do anything."""
    python = named_python(tmp_path, f"touch {tmp_path}/ran; exec {sys.executable} {text}")
    assert not known(python, archive)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("program", ["true", "sleep", "cat"])
def test_a_program_that_is_no_python_is_not(archive: Path, program: str) -> None:
    assert not known(program, archive)


def test_what_is_not_there_is_not(archive: Path, tmp_path: Path) -> None:
    assert not known("/no/such/python", archive)
    assert not known(sys.executable, tmp_path / "none.zip")


def test_another_that_came_in_the_place_of_the_one_that_was_asked_is_not(archive: Path) -> None:
    asked = subprocess.Popen(["true"], stdout=subprocess.PIPE)
    asked.wait()
    asked.stdout = io.BytesIO(repr((asked.pid + 1, [("/lib", 1)])).encode())
    assert gate_proof._said(asked, gate.COMES) == []
    asked.stdout.seek(0)
    asked.pid += 1
    assert gate_proof._said(asked, gate.COMES) == [("/lib", 1)]


@pytest.mark.parametrize(
    ("name", "line", "comes"),
    [
        ("distutils-precedence.pth", "import os", True),
        ("__editable___mine_finder.pth", "import os", True),
        ("zope-nspkg.pth", "import os", True),
        ("mine.pth", "/some/where", True),
        ("a1_coverage.pth", "import os", False),
        ("mine.pth", "import\tos", False),
    ],
)
def test_only_hooks_that_are_alike_at_any_time_may_run_before(
    archive: Path, venv, name: str, line: str, comes: bool
) -> None:
    python, packages = venv
    (packages / name).write_text(f"{line}\n")
    assert known(python, archive) is comes


def test_a_hook_that_hides_the_gate_is_seen_before_the_next_one_is_started(
    archive: Path, venv
) -> None:
    python, packages = venv
    proof = GateProof()
    assert proof.holds(python, archive, os.environ, LONG_S)
    assert proof.holds(python, archive, os.environ)
    (packages / "tracer.pth").write_text("import sys; sys.path.insert(0, '/tracer')\n")
    assert not proof.holds(python, archive, os.environ, LONG_S)
    (packages / "tracer.pth").unlink()
    proof.close()


def test_it_is_asked_again_in_another_environment(archive: Path, venv) -> None:
    python, proof = venv[0], GateProof()
    environ = {"PATH": "/usr/bin", "SEED": "1"}
    assert proof.holds(python, archive, environ, LONG_S)
    asked = proof._asked
    assert proof.holds(python, archive, environ | {"SEED": "2"})
    assert proof._asked is asked
    proof.holds(python, archive, environ | {"LD_PRELOAD": "/no/such.so"})
    assert proof._asked is not asked
    proof.close()


def test_one_that_was_killed_while_it_was_asked_is_asked_again(archive: Path) -> None:
    proof = GateProof()
    proof.holds(sys.executable, archive, os.environ)
    assert proof._asked
    proof._asked.kill()
    proof._asked.wait()
    proof.holds(sys.executable, archive, os.environ)
    assert proof.holds(sys.executable, archive, os.environ, LONG_S)
    proof.close()


def test_one_that_does_not_answer_is_waited_for_no_longer_and_ended(archive: Path) -> None:
    proof = GateProof()
    proof.holds("cat", archive, os.environ)
    proof._asked, proof._found = subprocess.Popen(["sleep", "1000"]), None
    hangs = proof._asked
    assert not proof.holds("cat", archive, os.environ, 0.01)
    assert proof._asked is hangs and hangs.poll() is None
    proof.close()
    assert hangs.returncode == -signal.SIGKILL
