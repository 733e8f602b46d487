from __future__ import annotations

import threading

import pytest
import waiting

from boxcar.laptop.common.side_by_side import (
    each,
    each_or_why,
    end_if_given_up,
    raise_all,
)
from boxcar.shared.errors import BoxcarError, InputError, TemporaryError

ALL = ["a", "b", "c"]


def test_all_are_done_at_once_and_answers_keep_their_order() -> None:
    together = threading.Barrier(len(ALL))

    def act(name: str) -> str:
        together.wait(waiting.LIMIT_S)
        return name.upper()

    assert each(ALL, act) == ["A", "B", "C"]
    assert each([], act) == []


def test_one_at_a_time_is_in_their_order() -> None:
    began: list[str] = []
    each(ALL, began.append, most=1)
    assert began == ALL


def test_one_that_fails_holds_up_no_other() -> None:
    def act(name: str) -> str:
        if name == "b":
            raise TemporaryError("it is gone")
        return name.upper()

    done, errors = each_or_why(ALL, act)
    assert done == {"a": "A", "c": "C"}
    assert {name: str(error) for name, error in errors.items()} == {"b": "it is gone"}


def test_a_mistake_of_ours_is_no_row() -> None:
    with pytest.raises(ZeroDivisionError):
        each_or_why(ALL, lambda name: 1 // 0)


def test_one_error_stays_as_it_is_and_several_say_whose_they_are() -> None:
    raise_all({})
    with pytest.raises(TemporaryError, match=r"^gone$"):
        raise_all({"a": TemporaryError("gone")})
    with pytest.raises(BoxcarError, match=r"(?s)^a: gone\nb: wrong$") as caught:
        raise_all({"a": TemporaryError("gone"), "b": InputError("wrong")})
    assert not isinstance(caught.value, InputError)
    with pytest.raises(InputError):
        raise_all({"a": InputError("x"), "b": InputError("wrong")})


def test_ctrl_c_need_not_wait_for_a_box_that_hangs() -> None:
    is_closed = threading.Event()

    def act(name: str) -> None:
        if name == "a":
            raise KeyboardInterrupt  # as the main thread has it where it waits for them
        assert is_closed.wait(waiting.LIMIT_S)

    with pytest.raises(KeyboardInterrupt):
        each(["a", "b"], act, on_interrupt=is_closed.set)
    assert is_closed.is_set()


def test_ctrl_c_gives_up_what_the_others_have_still_to_do() -> None:
    """Also what they in turn do side by side; and nothing that is done later."""
    ends: list[str] = []
    have_begun = threading.Barrier(3)

    def wait(name: str) -> None:
        end_if_given_up()
        have_begun.wait(waiting.LIMIT_S)
        waiting.until(_is_given_up, "somebody typed Ctrl-C")
        ends.append(name)

    def act(name: str) -> None:
        if name == "a":
            have_begun.wait(waiting.LIMIT_S)
            raise KeyboardInterrupt  # as the main thread has it where it waits for them
        each([f"{name}1", f"{name}2"], wait)

    with pytest.raises(KeyboardInterrupt):
        each(["a", "b"], act)
    assert sorted(ends) == ["b1", "b2"]
    each(["a"], lambda _: end_if_given_up())
    end_if_given_up()


def _is_given_up() -> bool:
    try:
        end_if_given_up()
    except TemporaryError:
        return True
    return False
