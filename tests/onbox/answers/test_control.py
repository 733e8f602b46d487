from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.files import codec, control
from boxcar.shared.files.control import Control
from onbox.answers import door

AT = "2026-11-21T03:27:43.973Z"


def ask(tmp_path: Path, document: Any, queue: str = "q1") -> dict[str, Any]:
    places = {"run": "tiny", "durable_dir": str(tmp_path / "tier"), "data_dir": str(tmp_path)}
    words = {"ask": "control", **places, "queue": queue, "document": document}
    return door.answer(json.dumps(words).encode())


def test_a_wish_is_what_the_agent_reads(tmp_path: Path) -> None:
    path = tmp_path / "tier/boxcar/tiny/control/q1.json"
    for wanted in (Control(control.DRAIN, AT), Control(control.RUN, AT, {"by": "me"})):
        assert ask(tmp_path, codec.encode(wanted)) == {}
        assert path.read_bytes() == codec.to_document(wanted)
        assert control.wanted(path) == wanted.want


@pytest.mark.parametrize("document", [None, [], {}, {"want": 1, "at": AT}, {"want": "run"}])
def test_what_is_no_wish_is_refused(tmp_path: Path, document: Any) -> None:
    assert ask(tmp_path, document)["error"]["kind"] == "InputError"
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "tier/boxcar/tiny").mkdir(parents=True)
    (tmp_path / "tier/boxcar/tiny/control").symlink_to(tmp_path / "elsewhere")
    assert ask(tmp_path, codec.encode(Control("run", AT)))["error"]["kind"] == "InputError"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_format_in_the_wish_does_not_become_that_of_the_file(tmp_path: Path) -> None:
    wish = codec.encode(Control(control.STOP, AT)) | {"format": "boxcar.other/9"}
    assert ask(tmp_path, wish) == {}
    assert control.wanted(tmp_path / "tier/boxcar/tiny/control/q1.json") == control.STOP
