from __future__ import annotations

import pytest

from boxcar.shared.errors import BoxcarError, DamagedError, InputError, NoRoomError, TemporaryError


def test_all_problems_of_a_file_are_said_at_once() -> None:
    error = InputError(["job.yaml:3: unknown key 'comand'", "job.yaml:9: no such file"])
    assert error.problems == ("job.yaml:3: unknown key 'comand'", "job.yaml:9: no such file")
    assert str(error) == "job.yaml:3: unknown key 'comand'\njob.yaml:9: no such file"


def test_one_problem_is_one_problem() -> None:
    assert InputError("no job.yaml here").problems == ("no job.yaml here",)


@pytest.mark.parametrize(
    ("kind", "exit_code"),
    [(InputError, 2), (DamagedError, 1), (TemporaryError, 75), (NoRoomError, 3)],
)
def test_each_error_has_the_exit_code_of_the_contract(
    kind: type[BoxcarError], exit_code: int
) -> None:
    assert kind("x").exit_code == exit_code
    assert issubclass(kind, BoxcarError)
