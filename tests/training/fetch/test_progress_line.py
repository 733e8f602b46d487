"""What the line of progress says."""

from __future__ import annotations

import pytest

from boxcar.training.fetch import download
from boxcar.training.reporting import say


def test_the_line_says_how_far_how_fast_and_how_long() -> None:
    said = download.line(1_200_000_000, 6_510_000_000, 85e6, 1, 6)
    assert said == "fetch: 1.2 GB of 6.51 GB (18 %), 85 MB/s, 1 min 2 s left, 1 of 6 files"


def test_a_rate_of_nothing_is_said_and_an_unknown_total_is_no_error() -> None:
    assert "stalled" in download.line(5, 10, 0.0, 0, 1)
    assert "checking" in download.line(10, 10, 0.0, 0, 1)
    assert "%" not in download.line(5, 0, 10.0, 0, 1)


@pytest.mark.parametrize(
    ("size_bytes", "said"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (999_999, "1 MB"), (6.2e9, "6.2 GB")],
)
def test_sizes_have_three_digits(size_bytes: float, said: str) -> None:
    assert say.size_text(size_bytes) == said


@pytest.mark.parametrize(
    ("left_s", "said"), [(-1, "0 min 0 s"), (62, "1 min 2 s"), (7260, "2 h 1 min")]
)
def test_times_are_said_in_two_units(left_s: float, said: str) -> None:
    assert download.lasting(left_s) == said


def test_bytes_are_counted_and_a_log_gets_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "EVERY_S", {False: 0.01, True: 0.01})
    counting = download.ProgressLine(100, 1)
    counting.add(50)
    said = ""
    with counting:
        while said.count("\n") < 2:
            said += capsys.readouterr().err
    assert said.startswith("fetch: 50 B of 100 B (50 %), ") and "\r" not in said
