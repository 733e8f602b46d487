from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from run_on_disk import make_run
from waiting import LIMIT_S

from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.run.view import RunView
from boxcar.laptop.verbs import watch


def test_who_leaves_hangs_up_on_a_box_that_hangs_and_does_not_call_it_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, closed = make_run(tmp_path), threading.Event()
    monkeypatch.setattr(watch, "_FAREWELL_S", 0.05)
    monkeypatch.setattr(LocalSite, "close", lambda boxes: closed.set())

    def looks(is_to_end: Callable[[float], bool]) -> Iterator[RunView]:
        assert closed.wait(LIMIT_S)
        yield run.look()

    feed = watch._Feed(run.site, looks, lambda: None, watch._Said())
    feed.close()
    assert closed.is_set() and feed.view is None
