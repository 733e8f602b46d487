from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec
from boxcar.shared.wire import question

SHA = "0a" * 32
HOSTILE = ["", ".", "..", "../x", "/x", "x/y", "x\0", "-x", ".x", "$(touch x)", "x\n", "\ud800"]
WRONG: list[Any] = [*HOSTILE, 1, None, [], {}, True]


@dataclass(frozen=True)
class Fields:
    """One of each kind."""

    run: question.RunName = "r"
    queue: question.QueueName = "q"
    box: question.BoxName = "b"
    cell: question.CellName = "c"
    digest: question.Digest = SHA
    path: question.BoxPath = "/x"
    count: question.Count = 0
    at: question.Time = "2026-11-22T00:00:00.000Z"
    token: question.Token = "ab" * 8
    has: question.Prefix = (0, SHA)


def read(name: str, value: Any) -> Any:
    return getattr(codec.decode(Fields, {name: value}, "here"), name)


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize("name", ["run", "queue", "box", "cell", "digest", "at", "token"])
def test_a_name_that_could_lead_elsewhere_is_refused_by_its_field(name: str, value: Any) -> None:
    with pytest.raises(DamagedError, match=f"^here: {name}: "):
        read(name, value)


def test_a_cell_is_named_as_a_queue_names_it() -> None:
    assert read("cell", "größer+2") == "größer+2"
    for name in ("ends.", "ü" * 101, "a" * 101):
        with pytest.raises(DamagedError, match="here: cell: expected the name of a cell"):
            read("cell", name)


@pytest.mark.parametrize("value", ["", "x", "./x", "~root/x", "~x", "/x\0", 3, None])
def test_a_path_of_a_box_is_absolute_or_below_its_home(value: Any) -> None:
    assert (read("path", "/x/y"), read("path", "~/x")) == ("/x/y", "~/x")
    with pytest.raises(DamagedError, match=r"^here: path: "):
        read("path", value)


@pytest.mark.parametrize("value", [True, -1, 1.0, "1", None])
def test_a_count_is_a_whole_number_from_0(value: Any) -> None:
    with pytest.raises(DamagedError, match=r"^here: count: expected"):
        read("count", value)


@pytest.mark.parametrize("at", ["yesterday", "T Z", "2026-13-99T00:00:00Z", "2026-01-01"])
def test_a_time_is_one_that_can_be_reckoned_with(at: str) -> None:
    with pytest.raises(DamagedError, match=r"^here: at: "):
        read("at", at)


@pytest.mark.parametrize("value", [[], [1], [-1, SHA], ["1", SHA], [1, "x"], [1, SHA, 1], None, {}])
def test_what_the_laptop_has_is_a_size_and_a_digest(value: Any) -> None:
    assert read("has", [7, SHA]) == (7, SHA)
    with pytest.raises(DamagedError, match=r"^here: has(\[\d\])?: "):
        read("has", value)


def test_one_of_several_words_is_told_with_all_of_them() -> None:
    rule = question.one_of("tmux", "setsid")
    rule("tmux")
    with pytest.raises(ValueError, match="expected tmux or setsid, found 'nohup'"):
        rule("nohup")
