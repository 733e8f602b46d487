"""Programs that were left behind by one that was let in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from gated import at_gate, open_gate, said
from waiting import LIMIT_S

from boxcar.shared.disk import lock
from boxcar.shared.files import attempt
from onbox.agent.agent import SHORT_S
from onbox.cell.wrapper import ahead, words
from onbox.cell.wrapper import heir as heir_module
from onbox.cell.wrapper.heir import Heir
from onbox.cell.wrapper.program import TURN
from onbox.cell.wrapper.turn import Turn
from onbox.cell.wrapper.waiting import Said
from onbox.machine import process


def pipes(pid: int) -> set[str]:
    found = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
    return {name for name in found if name.startswith("pipe:")}


def test_each_cell_is_run_by_what_the_one_before_has_left_and_finds_nothing_of_it(box, until):
    box.start("a")
    for cell in "abcd":
        if cell != "a":
            until(box.heir.has_come)
            # That of the agent, and that on which heirs say their number: none is left to the next.
            until(lambda: len(pipes(box.heir.pid)) == 2)
        child = box.let_in(cell)
        assert isinstance(child, subprocess.Popen if cell == "a" else Heir)
        until((box.run.out(cell) / "said.json").exists)
        running = attempt.read_running(box.run.scratch().running(cell))
        assert running
        assert running.pid == child.pid
        open_gate(box.run, cell)
        assert child.wait() == 0
        assert box.rc(cell) == 0
        assert said(box.run, cell) == said(box.run, "first")


def test_an_heir_holds_nothing_of_the_cell_beside_which_it_waits(box, until):
    box.start("a")
    child = box.let_in("a")
    until((box.run.out("a") / "said.json").exists)
    until(box.heir.has_come)
    log = box.run.scratch().log("a")
    assert lock.is_held(log)
    heir = box.heir.pid
    files = {str(link.readlink()) for link in Path(f"/proc/{heir}/fd").iterdir()}
    assert not [name for name in files if str(box.run.root) in name]
    assert heir not in process.orphans("0"), "it is no leftover of a cell"
    assert heir not in process.descendants(child.pid)
    for pid in (child.pid, *process.descendants(child.pid)):
        os.kill(pid, signal.SIGKILL)
    child.wait()
    until(lambda: not lock.is_held(log))
    assert box.heir.has_come()


def test_what_was_said_at_once_behind_a_cells_words_is_for_the_heir(box, until):
    box.start("a")
    waits, python = box.ahead._child, box.run.plan.training_python
    until(lambda: box.ahead.comes_to_gate(box.command("b"), python, {}))
    os.kill(waits.pid, signal.SIGSTOP)
    box.ahead.expect(box.command("a"), python, {}, is_any_alike=False)
    box.let_in("a")
    assert box.ahead._expected == []
    box.ahead.expect(box.command("b"), python, {}, is_any_alike=False)
    os.kill(waits.pid, signal.SIGCONT)
    until(lambda: at_gate(box.run, "b"), "a Python at its gate")
    until(box.heir.has_come)
    box.let_in("b", leaves_heir=False)
    until((box.run.out("b") / "said.json").exists)
    assert box.ahead._child is None
    assert said(box.run, "b") == said(box.run, "first")


def test_who_is_let_in_alone_leaves_no_heir(box, until):
    box.start("a")
    told, numbers = box.ahead._told, []
    box.let_in("a", leaves_heir=False)
    until((box.run.out("a") / "said.json").exists)
    until(lambda: numbers.append(told.read(64)) or numbers[-1] is not None)
    assert numbers[-1] == b""


def test_an_heir_ends_with_the_agent(box, until):
    box.start("a")
    box.let_in("a")
    until(box.heir.has_come)
    heir = box.heir.pid
    box.ahead.close()
    assert process.start_time(heir) is None


def test_a_program_that_is_not_there_any_more_is_started_anew(box, until):
    box.start("a")
    box.let_in("a")
    until(box.heir.has_come)
    heir = box.heir
    os.kill(heir.pid, signal.SIGKILL)
    until(lambda: heir.poll() is not None)
    box.start("b")
    assert isinstance(box.ahead._child, subprocess.Popen)


def test_an_heir_that_was_killed_is_not_let_in(box, until):
    box.start("a")
    box.let_in("a")
    until(box.heir.has_come)
    os.kill(box.heir.pid, signal.SIGKILL)
    until(lambda: not box.heir.has_come())
    assert box.let_in("b") is None
    assert not box.run.scratch().log("b").exists()


def test_of_an_older_releases_program_no_heir_is_asked(box, until):
    (box.run.scratch().wrapper(box.run.release.name) / TURN).unlink()
    box.start("a")
    child = box.let_in("a")
    assert isinstance(child, subprocess.Popen)
    assert box.ahead._child is None
    until((box.run.out("a") / "said.json").exists)
    assert said(box.run, "a") == said(box.run, "first")


def test_after_many_heirs_a_program_is_started_anew(box, until, monkeypatch):
    monkeypatch.setattr(ahead, "_MOST_HEIRS", 1)
    box.start("a")
    box.let_in("a")
    until(box.heir.has_come)
    box.let_in("b")
    assert box.ahead._child is None
    box.start("c")
    assert isinstance(box.let_in("c"), subprocess.Popen)
    assert box.heir


def test_what_a_shell_says_before_it_is_no_heirs_number(box, until, monkeypatch, tmp_path):
    says = tmp_path / "says.sh"
    says.write_text("echo 1; echo Loading modules\n")
    monkeypatch.setenv("BASH_ENV", str(says))
    box.start("a")
    child = box.let_in("a")
    until(box.heir.has_come)
    assert box.heir.pid not in (1, child.pid)


def test_who_does_not_get_the_pipe_runs_its_cell_and_leaves_no_heir(
    box, until, monkeypatch, tmp_path
):
    closes = tmp_path / "closes.sh"
    closes.write_text(
        "for fd in /proc/self/fd/*; do n=${fd##*/}\n"
        'if ((n > 2 && n != 255)); then eval "exec $n<&-"; fi; done\n'
        "exec 3</dev/null\n"
    )
    monkeypatch.setenv("BASH_ENV", str(closes))
    box.start("a")
    child = box.let_in("a")
    until((box.run.out("a") / "said.json").exists)
    until(lambda: box.heir.poll() is not None)
    open_gate(box.run, "a")
    assert child.wait() == 0
    assert box.rc("a") == 0
    assert box.let_in("b") is None


def test_a_descriptor_that_is_another_file_is_no_pipe_of_ours(tmp_path):
    told, tells = os.pipe()
    inode = os.fstat(tells).st_ino
    assert words._pipe(f"{tells}:{inode}") == tells
    assert words._pipe("") is None
    with (tmp_path / "other").open("w") as other:
        os.dup2(other.fileno(), tells)
        assert words._pipe(f"{tells}:{inode}") is None
    os.close(tells)
    assert words._pipe(f"{tells}:{inode}") is None
    os.close(told)


def test_an_heir_that_came_to_somebody_else_is_not_let_in(box, until):
    process._prctl(process._PR_SET_CHILD_SUBREAPER, 0)
    box.start("a")
    box.let_in("a")
    until(lambda: box.heir.poll() is not None)
    assert not box.heir.has_come()
    assert box.let_in("b") is None


@pytest.mark.parametrize("refused_at", [1, 2])
def test_who_can_leave_no_heir_runs_its_cell_and_nobody_else_does(monkeypatch, refused_at):
    fork, asked, (told, tells) = os.fork, [], os.pipe()

    def forked() -> int:
        asked.append(1)
        if len(asked) == refused_at:
            raise BlockingIOError("no room for another process")
        return fork()

    monkeypatch.setattr(os, "fork", forked)
    assert Turn(Said()).is_heir(tells) is False
    os.close(tells)
    assert os.read(told, 64) == b""
    os.close(told)


def test_an_heir_says_its_number_once_its_parent_has_gone(monkeypatch):
    told, tells = os.pipe()
    ends = os._exit
    monkeypatch.setattr(os, "_exit", lambda code: (time.sleep(0.1), ends(code)))
    its = Turn(Said())
    if its.is_heir(tells):
        os.write(tells, f"{os.getppid()}\n".encode())
        ends(0)
    os.close(tells)
    assert not its.may_go(), "nobody says so"
    its.end()
    with open(told, "rb") as said:  # noqa: PTH123  (a descriptor)
        number, parent = (int(line) for line in said)
    assert number not in (0, 1, os.getpid())
    assert Path(f"/proc/{parent}/cmdline").exists(), "whoever adopts it lives"


def heir_of(text: str) -> tuple[Heir, subprocess.Popen[bytes]]:
    child = subprocess.Popen(
        [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert child.stdin and child.stdout
    os.set_blocking(child.stdout.fileno(), False)
    return Heir(child.stdin, child.stdout), child


SAYS = "import os, sys; os.write(1, str(os.getpid()).encode()); "


def test_the_exit_code_is_that_of_the_process_however_often_it_is_asked(until):
    heir, _ = heir_of(SAYS + "sys.stdin.read(); sys.exit(7)")
    until(heir.has_come)
    assert heir.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        heir.wait(0.01)
    heir.stdin.close()
    assert [heir.wait(), heir.wait(LIMIT_S), heir.poll()] == [7, 7, 7]


def test_one_that_says_nothing_has_not_come_and_is_gone_once_it_cannot_say_anything(until):
    heir, child = heir_of("import os, sys; sys.stdin.read()")
    assert not heir.has_come()
    assert heir.poll() is None
    heir.stdin.close()
    assert heir.wait(LIMIT_S) == -signal.SIGKILL
    assert not heir.has_come()
    child.wait()


@pytest.mark.parametrize("noise", ["Loading modules", "-1", ""])
def test_what_is_no_number_is_no_heir(until, noise):
    heir, child = heir_of(f"print({noise!r}); import sys; sys.stdin.read()")
    until(lambda: heir.poll() is not None)
    assert not heir.has_come()
    assert heir.pid is None
    child.kill()
    child.wait()


def test_a_thread_and_the_loop_may_wait_for_one_at_once(until, monkeypatch):
    asked = heir_module._exit_code
    monkeypatch.setattr(heir_module, "_exit_code", lambda pid: time.sleep(0.05) or asked(pid))
    heir, _ = heir_of(SAYS + "sys.stdin.read(); sys.exit(7)")
    until(heir.has_come)
    codes: list[int] = []
    threads = [threading.Thread(target=lambda: codes.append(heir.wait())) for _ in range(4)]
    for thread in threads:
        thread.start()
    heir.stdin.close()
    for thread in threads:
        thread.join()
    assert codes == [7, 7, 7, 7]


def test_one_that_was_reaped_by_somebody_else_has_an_end_that_is_no_success(until):
    heir, child = heir_of(SAYS)
    until(lambda: heir._find() is not None)
    child.wait()
    assert heir.wait() == -signal.SIGKILL
    heir.kill()  # nobody: the number may be another's


def test_one_that_lives_is_killed(until):
    heir, _ = heir_of(SAYS + "sys.stdin.read()")
    until(heir.has_come)
    heir.kill()
    assert heir.wait(LIMIT_S) == -signal.SIGKILL


def test_one_that_says_nothing_and_does_not_end_is_given_up():
    heir, child = heir_of("import time; time.sleep(600)")
    heir.kill()
    assert heir.wait() == -signal.SIGKILL
    child.kill()
    child.wait()


# Says whether its wrapper is a copy, by the kernel's PF_FORKNOEXEC.
COPY = """\
import os, sys
from pathlib import Path
flags = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[6])
Path(sys.argv[2], "is_copy").write_text(str(flags >> 6 & 1))
Path(sys.argv[2], "m.json").write_text('{"step": 1}')
"""


def test_an_agent_runs_cells_that_end_at_once_by_heirs(make_run):
    names = [f"c{at}" for at in range(200)]
    run = make_run(
        {name: {} for name in names}, is_hurried=False, train=COPY, resume=None, linger_s=600
    )
    run.durable.queue("q1").write_text("")
    run.start()
    for at in range(0, len(names), 5):  # on a busy machine not all of them end at once
        run.append(*(f"configs/{name}.json count 3" for name in names[at : at + 5]))
        run.wait_for("cell.verified", names[at + 4])
        copies = [(run.out(name) / "is_copy") for name in names[at : at + 5]]
        if any(path.exists() and path.read_text() == "1" for path in copies):
            return
    ended = run.events("cell.succeeded")
    if not any(event.data["seconds"] < SHORT_S for event in ended):
        pytest.skip("this machine is too busy for any cell to end at once")
    pytest.fail("none of them was run by an heir")
