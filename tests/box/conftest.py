"""`hosts`: three rented boxes for one test, and a PATH on which `ssh` reaches them.

Fresh for each test, gone after it; skipped where namespaces are not permitted. `one_box` is the
same with box-a alone, which is quicker.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hosts import NAMES, Hosts, NotPermitted, boxes


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    yield from _made(tmp_path, monkeypatch, NAMES)


@pytest.fixture
def one_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    yield from _made(tmp_path, monkeypatch, NAMES[:1])


def _made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: Sequence[str]) -> Iterator[Hosts]:
    try:
        with boxes(tmp_path / "hosts", names) as made:
            monkeypatch.setenv("PATH", f"{made.bin}{os.pathsep}{os.environ['PATH']}")
            monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
            yield made
    except NotPermitted as reason:
        pytest.skip(f"no boxes of one's own here: {reason}")
