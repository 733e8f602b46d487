"""Bad days with rented boxes: each ends in a clear sentence or heals, and loses nothing."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hosts import BOX_ROOT, Hosts
from proof import assert_published_once, assert_pulled
from rented import PYTHON, Rented, hurry, rent, without
from tiny_project import Said
from waiting import LIMIT_S, until

ONE = {"q1": ["configs/a.json one"]}
BIG_BYTES = 3_000_000
# Every clock that a process of the box asks is 5 hours ahead.
AHEAD_S = 5 * 3600
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, at);
    if (id == CLOCK_REALTIME) at->tv_sec += AHEAD_S;
    return code;
}
time_t time(time_t *to) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    if (to) *to = at.tv_sec;
    return at.tv_sec;
}
"""


def big(run: Rented) -> None:
    """Something that takes a slow link a while, also where the half of it is there."""
    (run.root / "weights.bin").write_bytes(os.urandom(BIG_BYTES))


def ended(run: Rented, words: Sequence[str], process: subprocess.Popen[str]) -> Said:
    out, err = process.communicate(timeout=LIMIT_S)
    return Said(" ".join(words), process.returncode, out, err)


def is_clear(said: Said, *words: str) -> None:
    """What went wrong in a few lines that a person can act on."""
    assert "Traceback" not in said.out + said.err, str(said)
    for word in words:
        assert word in said.err, f"expected {word!r}: {said}"


# --- who is there, and who is it


@pytest.mark.faults
def test_boxes_that_let_nobody_in_hold_up_no_other_and_join_later(
    hosts: Hosts, tmp_path: Path
) -> None:
    hurry(hosts)
    lines = {f"q{n}": [f"configs/{cell}.json one"] for n, cell in enumerate("abc", 1)}
    run = rent(hosts, tmp_path / "project", lines)
    keys = hosts.seen("box-c", BOX_ROOT / "etc" / "authorized_keys")
    right = keys.read_text()
    keys.write_text("")
    hosts.cut("box-b")
    hosts.start_sshd("box-a", MaxStartups=1)

    first = run.launch("--json").ended(1)
    assert first.document["started"] == ["q1"]
    is_clear(first, "box-b cannot be reached: connection timed out")
    is_clear(first, "box-c rejected your key", "IdentityFile")
    for box in ("box-b", "box-c"):
        is_clear(first, f"boxcar launch --box {box}")
    assert "host key changed" not in first.err

    keys.write_text(right)
    hosts.heal("box-b")
    second = run.launch("--json").ended(0)
    assert {"q2", "q3"} <= set(second.document["started"])
    watched = run.watch("--json").document
    assert {cell["state"] for cell in watched["cells"]} == {"verified"}
    assert_published_once(run, ["a", "b", "c"])


def test_another_host_key_stops_everything_until_the_person_accepts_it(
    one_box: Hosts, tmp_path: Path
) -> None:
    run = rent(one_box, tmp_path / "project", ONE)
    run.boxcar("push").ended(0)
    before = one_box.fingerprint("box-a")
    one_box.new_host_key("box-a")
    (run.root / "train.py").write_text("changed")
    refused = run.boxcar("push").ended(2)
    is_clear(refused, before, one_box.fingerprint("box-a"), "Nothing was sent")
    assert len(run.releases) == 1
    status = run.boxcar("status", "--json")
    assert "host key changed" in str(status.document["problems"])
    type_this(refused)
    again = run.boxcar("push").ended(0)
    is_clear(again, f"{one_box.fingerprint('box-a')} (before: {before})", "is new")


def test_another_box_under_the_same_alias_is_not_written_to(one_box: Hosts, tmp_path: Path) -> None:
    run = rent(one_box, tmp_path / "project", ONE)
    run.boxcar("push").ended(0)
    one_box.set_up("box-a", hostname="somebody-elses")
    (run.root / "train.py").write_text("changed")
    refused = run.boxcar("push").ended(2)
    is_clear(refused, "expected host name box-a, found somebody-elses", "Nothing was written")
    assert len(run.releases) == 1
    type_this(refused)
    run.boxcar("push").ended(0)
    assert len(run.releases) == 2


@pytest.mark.parametrize("alias", ["box-a; touch pwned", "$(touch pwned)", "-oProxyCommand=x"])
def test_an_alias_that_a_shell_would_read_is_refused_before_anything(
    one_box: Hosts, tmp_path: Path, alias: str
) -> None:
    run = rent(one_box, tmp_path / "project", ONE)
    run.write_job(queues={"queues/q1.txt": alias})
    for verb in ("plan", "push", "status"):
        is_clear(run.boxcar(verb).ended(2), alias)
    assert not list(run.root.rglob("pwned")) and not (run.root / ".boxcar" / "hosts").exists()


def type_this(said: Said) -> None:
    """What a person does who was told the command that accepts the box as it is."""
    found = re.search(r"type: (.*)", said.err)
    assert found, str(said)
    # A shell, because that is what a person types the told words into.
    subprocess.run(found[1], shell=True, check=True, capture_output=True)


# --- shells, homes, tools


@pytest.mark.faults
def test_odd_shells_homes_and_missing_tools_run_all_the_same(hosts: Hosts, tmp_path: Path) -> None:
    lines = {f"q{n}": [f"configs/{cell}.json 'a b'"] for n, cell in enumerate("abc", 1)}
    run = rent(hosts, tmp_path / "my project", lines)
    hosts.set_up("box-a", shell="banner", home="my home")
    # The rest holds without a fish too.
    hosts.set_up("box-b", shell=shutil.which("fish") or "/bin/dash")
    without(hosts, "box-b", "rsync")
    without(hosts, "box-c", "tmux")
    launched = run.launch().ended(0)
    assert run.credentials("box-a").exists()
    is_clear(launched, "box-c: detach: setsid. tmux is not installed")
    run.watch()
    pulled = run.boxcar("pull").ended(0)
    for box in ("box-a", "box-b"):
        said = launched.err + pulled.err
        assert f"{box}: rsync does not work there, so files are sent by tar" in said
    assert_pulled(run, ["a", "b", "c"])
    assert_published_once(run, ["a", "b", "c"])


@pytest.mark.faults
def test_a_box_whose_clock_is_hours_off_is_told_and_not_taken_for_dead(
    one_box: Hosts, tmp_path: Path
) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler for another clock")
    run = rent(one_box, tmp_path / "project", ONE)
    python = str(one_box.data_dir / "python")
    _install_late_python(one_box, tmp_path)
    profile = run.root / "profiles" / "rented.yaml"
    profile.write_text(re.sub(r"(_python): .*", rf"\1: {python}", profile.read_text()))
    run.hold("a", at=1)
    launched = run.launch().ended(0)
    is_clear(launched, "box-a: box clock: 4h59m ahead")
    assert "running a on box-a" in launched.err
    seen = run.boxcar("status", "--json").ended(0).document
    [queue], [cell] = seen["queues"], seen["cells"]
    assert (queue["condition"], cell["state"]) == ("running", "running")
    assert 0 <= queue["heartbeat_age_s"] < 60 and 0 <= cell["seconds"] < 120
    assert run.events("q1")[0]["at"] > seen["at"], "the box has the right time"
    run.let_go("a")
    run.watch()
    assert_published_once(run, ["a"])


def _install_late_python(hosts: Hosts, tmp_path: Path) -> None:
    """A Python on box-a to which it is hours later."""
    source = tmp_path / "clock.c"
    source.write_text(CLOCK.replace("AHEAD_S", str(AHEAD_S)))
    library = hosts.seen("box-a", hosts.data_dir / "clock.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    python = hosts.seen("box-a", hosts.data_dir / "python")
    preload = f"LD_PRELOAD={hosts.data_dir / 'clock.so'}"
    python.write_text(f'#!/bin/sh\nexec env {preload} {PYTHON} "$@"\n')
    python.chmod(0o755)


# --- the link


@pytest.mark.faults
def test_a_push_that_is_cut_or_finds_no_room_goes_on_with_the_same_command(
    one_box: Hosts, tmp_path: Path
) -> None:
    hurry(one_box)
    run = rent(one_box, tmp_path / "project", ONE)
    big(run)
    one_box.limit("shared", "size=2m")
    is_clear(run.boxcar("push").ended(1), "box-a", "are free", "Free some space there")
    disk = os.statvfs(one_box.seen("box-a", Hosts.shared))
    one_box.limit("shared", f"size=1g,nr_inodes={disk.f_files - disk.f_ffree + 3}")
    is_clear(run.boxcar("push").ended(1), "inodes are free", "Free some space there")
    one_box.limit("shared", "nr_inodes=100000")

    one_box.slow("box-a", "4mbit")
    process = run.start("push")
    run.wait_for("the first bytes", lambda: _unfinished_bytes(run) > 0)
    one_box.limit("shared", "size=2m")
    is_clear(ended(run, ["push"], process).ended(1), "Free some space on box-a")
    one_box.limit("shared", "size=1g")
    assert not _named(run), "half a release has a name"

    [left], size_bytes = run.releases, _unfinished_bytes(run)
    process = run.start("push")
    run.wait_for("more bytes", lambda: _unfinished_bytes(run) > size_bytes + 100_000)
    one_box.cut("box-a")
    is_clear(
        ended(run, ["push"], process).ended(1), "box-a cannot be reached: the connection was lost"
    )
    assert run.releases == {left}, "what the first push sent was not gone on with"
    one_box.heal("box-a")
    pushed = run.boxcar("push", "--json").ended(0).document
    assert run.releases == {pushed["release"]}, "something is left of the pushes that failed"


def _unfinished_bytes(run: Rented) -> int:
    if not (run.tier / "releases").exists():
        return 0
    return sum(path.stat().st_size for path in (run.tier / "releases").rglob("*") if path.is_file())


def _named(run: Rented) -> list[str]:
    return [name for name in run.releases if re.fullmatch("[0-9a-f]{64}", name)]


def test_ctrl_c_while_code_is_sent_starts_nothing_and_the_same_command_goes_on(
    one_box: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It went on behind the word "interrupted", and the box trained."""
    run = rent(one_box, tmp_path / "project", ONE)
    big(run)
    with monkeypatch.context() as slow:
        begun = slow_rsync(tmp_path / "bin", slow)
        words = ("launch", "--no-smoke")
        launching = run.start(*words)
        until(begun.exists)
        launching.send_signal(signal.SIGINT)
        said = ended(run, words, launching)
    assert said.code == 130 and "same command again" in said.err, str(said)
    assert "connection was lost" not in said.err, str(said)
    assert not list(run.tier.glob("queues/*")) and not list(run.tier.glob("journals/*"))
    run.launch().ended(0)
    run.wait_for_event("q1", "cell.verified", "a")


def slow_rsync(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """100 kB a second, so that it does not end by itself. The file is there once it has begun."""
    folder.mkdir()
    begun = folder / "begun"
    text = f'#!/bin/sh\necho >{begun}\nexec {shutil.which("rsync")} --bwlimit=100k "$@"\n'
    (folder / "rsync").write_text(text)
    (folder / "rsync").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return begun


@pytest.mark.faults
def test_logs_and_a_pull_go_on_after_a_cut(one_box: Hosts, tmp_path: Path) -> None:
    run = rent(one_box, tmp_path / "project", ONE)
    train = run.root / "train.py"
    # Written into the log as it goes, and a result that takes a slow link a while.
    text = train.read_text().replace("range(50)", "range(400_000)")
    train.write_text(text.replace("step += 1\n", "step += 1; print('at', step, flush=True)\n"))
    run.hold("a", at=1)
    run.launch().ended(0)
    hurry(one_box)
    follow = run.start("logs", "--cell", "a", "--follow")
    assert follow.stdout
    _read_until(follow, "at 1")
    one_box.cut("box-a")
    assert follow.stderr
    while "the log continues when the box answers again" not in (line := follow.stderr.readline()):
        assert line, "logs ended when the connection was lost"
    one_box.heal("box-a")
    run.let_go("a")
    _read_until(follow, "trained configs/a.json one")
    ended(run, ["logs"], follow).ended(0)
    run.wait_for_event("q1", "queue.done")

    one_box.slow("box-a", "4mbit")
    process = run.start("pull")
    partial = run.results / ".partial"
    run.wait_for("the first bytes", lambda: _bytes_below(partial) > 100_000)
    one_box.cut("box-a")
    is_clear(ended(run, ["pull"], process).ended(1), "a was not pulled", "connection was lost")
    assert not (run.results / "cells" / "a" / "manifest.json").exists()
    one_box.heal("box-a")
    run.boxcar("pull").ended(0)
    assert_pulled(run, ["a"])


def _read_until(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdout
    while text not in (line := process.stdout.readline()):
        assert line, f"ended before {text!r}"


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


# --- two at once


@pytest.mark.faults
def test_two_laptops_that_launch_the_same_run_at_once_start_one_agent(
    one_box: Hosts, tmp_path: Path
) -> None:
    runs = [rent(one_box, tmp_path / name, ONE) for name in ("mine", "yours")]
    for run in runs:
        run.hold("a", at=1)
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda run: run.launch(), runs))
    # Of two that push at one moment, one may be told to do it again.
    again = [run.launch() for run, one in zip(runs, said, strict=True) if one.code]
    assert [one.code for one in again] == [0] * len(again), str([*said, *again])
    started = [event for event in runs[0].events("q1") if event["type"] == "agent.started"]
    assert len(started) == 1, runs[0].told()
    runs[0].let_go("a")
    for run in runs:
        run.watch()
        run.boxcar("pull").ended(0)
    assert_published_once(runs[0], ["a"])
