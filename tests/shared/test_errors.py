from __future__ import annotations

import pytest

from boxcar.shared.errors import (
    BoxcarError,
    Command,
    DamagedError,
    InputError,
    Message,
    NoRoomError,
    TemporaryError,
    message_of,
)


def test_all_problems_of_a_file_are_said_at_once() -> None:
    error = InputError(["job.yaml:3: unknown key 'comand'", "job.yaml:9: no such file"])
    assert error.problems == ("job.yaml:3: unknown key 'comand'", "job.yaml:9: no such file")
    assert str(error) == "job.yaml:3: unknown key 'comand'\njob.yaml:9: no such file"


def test_one_problem_is_one_problem() -> None:
    assert InputError("no job.yaml here").problems == ("no job.yaml here",)


def test_an_error_carries_the_next_command_as_data() -> None:
    error = TemporaryError("nothing lies there. Send it again", Command("push"))
    assert error.messages == (Message("nothing lies there. Send it again", Command("push")),)
    assert str(error) == "nothing lies there. Send it again: invoke push"


def test_what_is_said_of_an_error_keeps_its_command() -> None:
    error = BoxcarError("no release. Send it", Command("push"))
    assert message_of(error).under("queue_1") == Message(
        "queue_1: no release. Send it", Command("push")
    )
    assert message_of(InputError(["one", "two"])) == Message("one\ntwo")


def test_an_error_of_the_system_is_said_in_words() -> None:
    missing = FileNotFoundError(2, "No such file or directory", "job.yaml")
    assert message_of(missing) == Message("job.yaml: No such file or directory")
    assert message_of(OSError("no host")) == Message("no host")


@pytest.mark.parametrize(
    ("kind", "exit_code"),
    [(InputError, 2), (DamagedError, 1), (TemporaryError, 75), (NoRoomError, 3)],
)
def test_each_error_has_the_exit_code_of_the_contract(
    kind: type[BoxcarError], exit_code: int
) -> None:
    assert kind("x").exit_code == exit_code
    assert issubclass(kind, BoxcarError)
