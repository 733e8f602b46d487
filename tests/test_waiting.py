"""Tests have one clock: waiting.LIMIT_S, and pytest's behind it for what hangs all the same."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import waiting
from waiting import until

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py"))
# Waits that take a number of seconds, as their first word or by name.
WAITS = ("wait", "join", "communicate", "settimeout", "create_connection", "run", "Popen")
CLOCKS = ("monotonic", "perf_counter")
# Most sources have none of these words, and need not be parsed.
MAY_BE_ONE = re.compile(rf"\b({'|'.join(CLOCKS)})\b|\b(timeout=|(wait|join|settimeout)\()\s*\d")
# They look at a clock, and no test of theirs fails because time has passed.
ALLOWED = {
    "tests/waiting.py": "the one clock",
    "tests/training/ranks_at_work.py": "ends ranks after waiting.LIMIT_S, or what a test gave",
    "tests/faults/test_bad_days_long.py": "a storm of so many seconds",
    "tests/faults/test_demo_kills.py": "a storm of so many seconds",
    "tests/laptop/run/test_first_minute.py": "gives the product a time that has passed",
    "tests/onbox/agent/test_queue_watch.py": "an event ends a wait long before the floor would",
    "tests/laptop/places/test_local_site.py": "a question ends long before the box would answer",
    "tests/training/test_stall.py": "is busy for longer than the time-out",
    "tests/training/data/test_worker_transport.py": "gives up on what is meant to hang",
}


def own_clocks(source: str) -> Iterator[str]:
    """`line: words` for each clock that a test reads, and each limit that it made itself."""
    if not MAY_BE_ONE.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        limits = [word.value for word in node.keywords if word.arg == "timeout"]
        limits += node.args[:1] if name in ("wait", "join", "settimeout") else []
        if name in CLOCKS or (name in WAITS and any(is_long(limit) for limit in limits)):
            yield f"{node.lineno}: {ast.unparse(node)}"


def is_long(limit: ast.expr) -> bool:
    """A pause of less than a second is one between two looks."""
    return (
        isinstance(limit, ast.Constant)
        and isinstance(limit.value, int | float)
        and (limit.value >= 1)
    )


def test_no_test_has_a_clock_of_its_own():
    found = {file: list(own_clocks((ROOT / file).read_text(encoding="utf-8"))) for file in FILES}
    assert {file: clocks for file, clocks in found.items() if clocks and file not in ALLOWED} == {}


@pytest.mark.parametrize(
    "line",
    [
        "until = time.monotonic() + 20",
        "out, err = process.communicate(timeout=30)",
        "agent.wait(60)",
        "thread.join(timeout=20)",
        "subprocess.run(words, timeout=120)",
    ],
)
def test_a_planted_clock_is_found(line):
    assert len(list(own_clocks(line))) == 1


@pytest.mark.parametrize(
    "line",
    ["agent.wait(LIMIT_S)", "over.wait(0.05)", "run(words, timeout=LIMIT_S)", "', '.join(x)"],
)
def test_the_one_limit_and_a_short_pause_are_none(line):
    assert list(own_clocks(line)) == []


def test_each_exception_is_still_one():
    for file in ALLOWED:
        assert list(own_clocks((ROOT / file).read_text(encoding="utf-8"))), file


def test_what_is_waited_for_is_given_back():
    answers = iter([0, None, "", "here"])
    assert until(lambda: next(answers)) == "here"


def test_what_never_comes_is_said(monkeypatch):
    monkeypatch.setattr(waiting, "LIMIT_S", 0.01)
    with pytest.raises(AssertionError, match=r"not within 0 s: the end, but: \['still there'\]"):
        until(lambda: False, lambda: f"the end, but: {['still there']}")


def test_a_wait_ends_long_before_pytest_does():
    [limit_s] = re.findall(r"--timeout=(\d+)", (ROOT / "pyproject.toml").read_text())
    assert int(limit_s) >= 2 * waiting.LIMIT_S
