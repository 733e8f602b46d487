"""What the box's credentials put into a training's environment.

Each attempt's wrapper reads it between two cells, so this imports next to nothing; what else is in
that file is for the agent, see credentials.py.
"""

from __future__ import annotations

import os

_OTHERS = 0o077


def read(path: str) -> dict[str, str]:
    """The variables in `path`; a missing file has none.

    Raises InputError where somebody else can read or owns the file, DamagedError for its content.
    """
    data = private_bytes(path)
    if data is None:
        return {}
    found = record(data, path)
    if problem := problem_of(found):
        raise damaged(path, problem)
    env: dict[str, str] = found.get("env", {})  # type: ignore[attr-defined]
    return env


def private_bytes(path: str) -> bytes | None:
    """None for a missing file. Raises InputError where it is not this user's alone."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123  (without Path)
            _refuse_if_shared(path, os.fstat(file.fileno()))
            return file.read()
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise _refused(f"{path}: cannot be read by user {os.geteuid()}, who runs this") from error


def record(data: bytes, path: str) -> object:
    """Raises DamagedError for what is no JSON."""
    import json

    try:
        return json.loads(data)
    except ValueError:
        # `from None`: the error of json keeps the whole document.
        raise damaged(path, "not a JSON document. Push the credentials again.") from None


def problem_of(found: object) -> str | None:
    """What is wrong with its variables, by field and never by value."""
    if not isinstance(found, dict):
        return "expected a JSON object"
    env = found.get("env", {})
    if isinstance(env, dict) and all(_is_variable(*item) for item in env.items()):
        return None
    return "env: expected names of variables with texts as their values"


def damaged(path: str, *problems: str) -> Exception:
    from boxcar.shared.errors import DamagedError

    return DamagedError("\n".join(f"{path}: {problem}" for problem in problems))


def _refuse_if_shared(path: str, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise _refused(
            f"{path}: holds secrets, but belongs to user {status.st_uid}; expected user "
            f"{os.geteuid()}, who runs this. Remove it and push the credentials again."
        )
    if status.st_mode & _OTHERS:
        mode = status.st_mode & 0o777
        raise _refused(
            f"{path}: holds secrets, but others can reach it (mode {mode:o}, expected 600). "
            f"Type: chmod 600 {path}"
        )


def _refused(text: str) -> Exception:
    from boxcar.shared.errors import InputError

    return InputError(text)


def _is_variable(name: str, value: object) -> bool:
    # As boxcar/shared/names.py spells it, without `re`.
    is_name = name.isascii() and name.isidentifier()
    return is_name and isinstance(value, str) and "\0" not in value
