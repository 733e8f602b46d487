"""A copy over a line that is cut: when it goes on by itself, and when it gives up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_ssh import FakeSsh

from boxcar.laptop.hosts import by_rsync, folders
from boxcar.laptop.hosts.remote_folder import Remote
from boxcar.laptop.hosts.ssh_errors import LinkCut, Unreachable
from boxcar.shared.errors import TemporaryError

CUT, GONE = LinkCut("box-z", "cut"), Unreachable("box-z", "no answer")


class Line:
    """What becomes of each try: so many bytes come, then an error, or the end."""

    def __init__(self, place: Remote, monkeypatch: pytest.MonkeyPatch, tries: list[Any]) -> None:
        self.failures: list[int] = []  # in a row, before each pause
        self.place, self._tries = place, iter(tries)
        monkeypatch.setattr(folders, "_told", set())
        monkeypatch.setattr(folders, "pause_s", self._pause_s)
        monkeypatch.setattr(folders, "_by_rsync", self._try)

    def _pause_s(self, failures: int) -> float:
        self.failures.append(failures)
        return 0.0

    def _try(self, source: object, destination: Path, *rest: Any, **more: Any) -> bool:
        came, end = next(self._tries)
        with (destination / "came").open("ab") as file:
            file.write(b"x" * came)
        if end:
            raise end
        return True


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Remote]:
    (tmp_path / "here").mkdir()
    return Remote(FakeSsh(tmp_path), "/x")  # type: ignore[arg-type]


def fetch(line: Line, tmp_path: Path) -> None:
    folders.fetch_folder(line.place, tmp_path / "here", files=["came"])


def test_as_long_as_something_comes_it_goes_on(
    place: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = [(9, CUT), *[(0, GONE), (0, GONE), (0, CUT), (5, CUT)] * 3, (1, None)]
    line = Line(place, monkeypatch, tries)
    fetch(line, tmp_path)
    assert line.failures == [0, *[1, 2, 3, 0] * 3]
    assert place.ssh.told == ["box-z: the connection was lost; the copy continues"]  # type: ignore[attr-defined]


def test_a_box_that_was_never_reached_is_given_up_at_once(
    place: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = Line(place, monkeypatch, [(0, GONE)])
    with pytest.raises(Unreachable, match="no answer"):
        fetch(line, tmp_path)
    assert not line.failures


def test_a_line_that_is_cut_before_the_first_byte_gets_its_tries_too(
    place: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turned_away = Unreachable("box-z", "connection closed", is_brief=True)
    for first in (CUT, turned_away):
        line = Line(place, monkeypatch, [(0, first), (0, GONE), (3, None)])
        fetch(line, tmp_path)
        assert line.failures == [0, 1]
    line = Line(place, monkeypatch, [(0, CUT)] * (folders.TRIES + 1))
    with pytest.raises(LinkCut, match="cut"):
        fetch(line, tmp_path)
    assert line.failures == list(range(folders.TRIES))


def test_one_that_went_away_is_given_up_after_some_tries_and_the_cut_is_said(
    place: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = Line(place, monkeypatch, [(9, CUT), *[(0, GONE)] * folders.TRIES])
    with pytest.raises(LinkCut, match="cut"):
        fetch(line, tmp_path)
    assert line.failures == list(range(folders.TRIES))


def test_nobody_goes_on_after_ctrl_c_or_where_who_waits_ends_it(
    place: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TemporaryError, match="interrupted") as raised:
        by_rsync.raise_for_end(20, "rsync error: received SIGINT (code 20)", place, tmp_path)
    assert not isinstance(raised.value, Unreachable)
    line = Line(place, monkeypatch, [(9, CUT)])
    waits = iter([None, TemporaryError("no longer watching")])

    def wait() -> None:
        if end := next(waits):
            raise end

    with pytest.raises(TemporaryError, match="no longer"):
        folders.fetch_folder(place, tmp_path / "here", files=["came"], on_wait=wait)
    assert line.failures == [0]
