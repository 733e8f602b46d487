from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path

import pytest

from boxcar.training.reporting.say import say, say_on_main, say_once


def test_one_line_once_and_from_rank_0_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    say("a")
    say_once("only once")
    say_once("only once")
    monkeypatch.setenv("RANK", "1")
    say_on_main("of rank 0")
    assert capsys.readouterr().err == "boxcar: a\nboxcar: only once\n"


def test_a_stderr_that_is_closed_or_on_a_full_disk_ends_no_training(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    closed = (tmp_path / "log").open("w")
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    say("nobody hears this")
    full = os.fdopen(os.open("/dev/full", os.O_WRONLY), "wb", buffering=0)
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(full, write_through=True))
    say("nor this")
    with contextlib.suppress(OSError):
        sys.stderr.close()
