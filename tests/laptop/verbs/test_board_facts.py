"""Where a board is drawn, and what it looks like on terminals of several kinds."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import pytest
from rich.cells import cell_len
from run_on_disk import (
    RunOnDisk,
    agent_started,
    cell_failed,
    cell_progress,
    cell_started,
    cell_verified,
    from_now,
    held,
    make_run,
    queue_done,
)

from boxcar.laptop.project.notify.endpoints import Notify
from boxcar.laptop.verbs.status import is_board, status

LINES = {
    "queue_1": ["configs/a.yaml recon 3", "configs/b.yaml recon 3", "configs/d.yaml recon 3"],
    "queue_2": ["configs/c.yaml seg 3"],
}


class Terminal:
    """What a verb wrote to a terminal of 80 columns."""

    def __init__(self) -> None:
        self.master, slave = os.openpty()
        self.stream: TextIO = os.fdopen(slave, "w")

    def shown(self, run: RunOnDisk) -> str:
        """What status writes: pytest puts its own stdout there at the beginning of each test."""
        with contextlib.redirect_stdout(self.stream):
            status(run.project)
        return self._text()

    def _text(self) -> str:
        self.stream.flush()
        os.set_blocking(self.master, False)
        data = b""
        with contextlib.suppress(BlockingIOError):
            while part := os.read(self.master, 65_536):
                data += part
        return data.decode()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    made = Terminal()
    for name in ("NO_COLOR", "COLORTERM", "LC_ALL", "LC_MESSAGES", "LANG", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm-256color")
    yield made
    made.stream.close()
    os.close(made.master)


@pytest.fixture
def run(tmp_path: Path) -> RunOnDisk:
    made = make_run(tmp_path, LINES)
    made.say("queue_1", agent_started(), cell_verified("a"), cell_failed("b"))
    made.say("queue_1", cell_started("d"), cell_progress("d", 12, epoch=2, loss=0.5))
    made.beat("queue_1", from_now(0), cell="d", progress={"step": 13, "epoch": 2, "loss": 0.25})
    return made


def drawn(run: RunOnDisk, terminal: Terminal) -> str:
    with held(run.site.tier.lock("queue_1")):
        return terminal.shown(run)


def bare(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_status_on_a_terminal_is_the_board_with_the_reason_of_what_failed(
    run: RunOnDisk, terminal: Terminal
) -> None:
    lines = bare(drawn(run, terminal)).splitlines()
    shown = "\n".join(lines)
    assert re.search("✗  b +box-a  OOM out of memory", shown)
    assert "▶  d  loss 0.25" in shown
    assert "✓  a  psnr 27.25" in shown
    assert "1 verified" in shown and "1 failed" in shown and "1 queued" in shown
    assert lines[-1].startswith("next: invoke watch") or "explain --cell b" in lines[-1]
    assert max(map(cell_len, lines)) <= 80
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("term", ["xterm", "xterm-256color", "screen", "tmux-256color"])
def test_sixteen_colours_are_enough(
    run: RunOnDisk, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, term: str
) -> None:
    monkeypatch.setenv("TERM", term)
    found = set(re.findall(r"\x1b\[([0-9;]*)m", drawn(run, terminal)))
    assert {"1;31", "32", "36"} <= found, "failed, verified, running"
    assert not any("38;" in code for code in found), "a colour of 256 has no place in a theme"


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_whoever_wants_no_colours_gets_lines(
    run: RunOnDisk, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    shown = drawn(run, terminal)
    assert "demo: cells" in shown and "▶" not in shown
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", shown)


def test_a_pipe_is_no_terminal() -> None:
    assert not is_board(io.StringIO(), {"TERM": "xterm"})


def test_in_a_chinese_locale_the_board_is_chinese_and_its_columns_are_straight(
    run: RunOnDisk, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    lines = bare(drawn(run, terminal)).splitlines()
    shown = "\n".join(lines)
    assert "需要处理" in shown and "1 失败" in shown and "下一步：" in shown
    [head] = [line for line in lines if line.startswith("机器")]
    [row] = [line for line in lines if line.startswith("box-a")]
    column = head.index("cell")
    assert cell_len(head[:column]) == cell_len(row[: row.index("d ")])
    assert max(map(cell_len, lines)) <= 80


def test_a_name_that_would_drive_the_terminal_is_spelled(
    tmp_path: Path, terminal: Terminal
) -> None:
    run = make_run(tmp_path / "odd", {"queue_1": ["configs/a.yaml recon 3"]})
    warning = {"what": "[red]w", "text": "[bold]\x1b]0;title\x07"}
    run.say("queue_1", agent_started(), ("box.warning", warning), queue_done())
    shown = terminal.shown(run)
    assert "[bold]\\x1b]0;title" in shown and "\x1b]0;title" not in shown


def test_in_a_pipe_webhooks_that_nobody_sends_are_told(
    run: RunOnDisk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = {"url": "env:BOXCAR_TEST_HOOK", "secret": "env:BOXCAR_TEST_SECRET"}
    vars(run.project.job)["notify"] = (Notify.model_validate({"webhook": hook}),)
    status(run.project)
    assert "webhooks: off (BOXCAR_TEST_HOOK not set)" in capsys.readouterr().err


def test_a_price_is_shown_beside_the_run(run: RunOnDisk, terminal: Terminal) -> None:
    vars(run.project.job)["price"] = {"box-a": "3600 CNY/h"}
    run.project = replace(run.project)
    assert re.search(r"\d+\.\d\d CNY so far.*\(1 of 2 boxes\)", bare(drawn(run, terminal)))
