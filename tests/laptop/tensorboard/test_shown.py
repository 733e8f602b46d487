"""A TensorBoard that was started is found, shown, and gone with whoever asked for it."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_in_tensorboard import install, write_event
from waiting import until

from boxcar.laptop.tensorboard.shown import Here, Shown
from boxcar.shared.errors import TemporaryError

CHILDREN = ["pgrep", "-f"]


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PYTHONPATH", str(install(tmp_path / "site")))
    write_event(tmp_path / "logs" / "a" / "tb")
    yield tmp_path / "logs"


def served(folder: Path) -> bool:
    """Whether a TensorBoard of this folder lives."""
    words = f"tensorboard.main --logdir {folder} "
    return subprocess.run([*CHILDREN, words], capture_output=True, check=False).returncode == 0


def test_it_says_what_it_found_and_serves_until_it_is_closed(events: Path) -> None:
    shown, port_here = Here(sys.executable, events).show()
    try:
        found = shown.found()
        assert (found.events, found.has_tensorboard) == (1, True)
        url = f"http://127.0.0.1:{port_here(shown.port())}/"
        with urllib.request.urlopen(url) as answer:
            assert answer.read() == b"a/tb"
        assert not shown.is_over() and served(events)
    finally:
        shown.close()
    until(lambda: not served(events))
    assert shown.is_over()


def test_it_ends_with_whoever_held_its_stdin_also_where_that_was_killed(events: Path) -> None:
    shown, _ = Here(sys.executable, events).show()
    shown.port()
    assert shown._process.stdin is not None
    shown._process.stdin.close()  # as the kernel does for a process that dies
    until(lambda: not served(events))
    shown.close()


def test_without_event_files_or_without_tensorboard_it_starts_none(
    events: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    empty, _ = Here(sys.executable, tmp_path / "empty").show()
    assert empty.found().events == 0
    empty.close()
    assert empty.is_over() and not served(tmp_path / "empty")
    (tmp_path / "site" / "tensorboard" / "__init__.py").unlink()
    (tmp_path / "site" / "tensorboard" / "main.py").unlink()
    (tmp_path / "site" / "tensorboard").rmdir()
    bare, _ = Here(sys.executable, events).show()
    found = bare.found()
    bare.close()
    if found.has_tensorboard:
        pytest.skip("a TensorBoard is installed here")
    assert found.events == 1 and not served(events)


@pytest.mark.parametrize(
    ("says", "error"),
    [
        ("import sys; sys.exit('no module named site')", "did not report what it has: no module"),
        ("pass", "did not report what it has: no output"),
        ("print('welcome'); print('{}'); print('[1]')", "did not report what it has: welcome"),
    ],
)
def test_a_program_that_says_something_else_is_an_error_with_its_words(
    says: str, error: str
) -> None:
    shown = Shown([sys.executable, "-c", says])
    with pytest.raises(TemporaryError, match=error):
        shown.found()
    shown.close()


def test_a_tensorboard_that_does_not_come_up_is_told_with_its_words() -> None:
    shown = Shown([sys.executable, "-c", "print('ImportError: pkg_resources')"])
    with pytest.raises(TemporaryError, match="did not start: ImportError: pkg_resources"):
        shown.port()
    shown.close()
