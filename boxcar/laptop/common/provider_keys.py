"""The keys of providers' accounts: where they come from, and that nobody else gets them.

A key is read from its variable, else from the file that the provider's own program keeps. The
variables are taken out of this process's environment before a verb begins (`hide_keys`), so that no
child has them: no hook, no cell on this machine, no ssh, no rsync. No key is in an error.

Not covered: another process of the same person can read all that this one can.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from boxcar.shared.errors import InputError
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# `api_key = "..."` of RunPod's and Lambda's files.
_SETTING = re.compile(r"""^\s*api_?key\s*=\s*["']?([^\s"'#]+)""", re.IGNORECASE | re.MULTILINE)
_MOST_BYTES = 10_000
_hidden: dict[str, str] = {}


@dataclass(frozen=True)
class KeySource:
    """`variable` comes before `files`, which lie below the home or XDG_CONFIG_HOME (`config:`).
    `is_bare`: the file holds the key and nothing else.
    """

    variable: str
    files: tuple[str, ...] = ()
    is_bare: bool = False


# By the name of the platform's profile.
SOURCES: Mapping[str, KeySource] = {
    "vastai": KeySource(
        "VAST_API_KEY", ("config:vastai/vast_api_key", ".vast_api_key"), is_bare=True
    ),
    "runpod": KeySource("RUNPOD_API_KEY", (".runpod/config.toml",)),
    "lambda": KeySource("LAMBDA_API_KEY", (".lambda_cloud/lambda_keys",)),
    "autodl": KeySource("AUTODL_TOKEN"),
}
# What an account is reached with. CONTAINER_API_KEY is that of one vast instance, on the instance.
VARIABLES = frozenset({*(one.variable for one in SOURCES.values()), "CONTAINER_API_KEY"})
# AutoDL's also sends notifications: from this machine, unless `from: box` says otherwise.
NOTIFY = frozenset({SOURCES["autodl"].variable})


def refuse_key(name: str) -> None:
    """Raise ValueError for a variable that may go to no box and no cell."""
    if name in VARIABLES:
        raise ValueError(
            _(
                "{name} is the key of an account that rents boxes. It never goes to a box or a "
                "script; remove it here",
                name=name,
            )
        )


def hide_keys(environ: MutableMapping[str, str] = os.environ) -> None:
    """Take them out of the environment, for this process to know alone."""
    for name in VARIABLES & environ.keys():
        _hidden[name] = environ.pop(name)


def notify_key(name: str) -> str:
    """The hidden value of a variable that notifications may use; "" of any other."""
    return _hidden.get(name, "") if name in NOTIFY else ""


def find_key(provider: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The key, or None where there is none. Raises InputError for one that no header can hold."""
    source = SOURCES[provider]
    found = (_hidden.get(source.variable) or environ.get(source.variable, "")).strip()
    where = source.variable
    for file in source.files if not found else ():
        path = _path(file, environ)
        found = _read(path, is_bare=source.is_bare)
        where = str(path)
        if found:
            break
    if found and not (found.isascii() and found.isprintable() and " " not in found):
        raise InputError(_("{where}: expected a key on one line, without spaces", where=where))
    return found or None


def need_key(provider: str, title: str, environ: Mapping[str, str] = os.environ) -> str:
    """The key. Raises InputError that says where one may stand."""
    if (found := find_key(provider, environ)) is not None:
        return found
    source = SOURCES[provider]
    raise InputError(
        _(
            "no key of {title}: type `export {variable}=…`{files}",
            title=title,
            variable=source.variable,
            files=_or_in(source, environ),
        )
    )


def fingerprint(key: str) -> str:
    """8 hex digits, by which two keys are told apart and none is found out."""
    return hashlib.sha256(key.encode()).hexdigest()[:8]


def _or_in(source: KeySource, environ: Mapping[str, str]) -> str:
    if not source.files:
        return ""
    return _(", or put it into {file}", file=_path(source.files[0], environ))


def _path(file: str, environ: Mapping[str, str]) -> Path:
    home = Path(environ.get("HOME") or Path.home())
    if not file.startswith("config:"):
        return home / file
    given = Path(environ.get("XDG_CONFIG_HOME", ""))
    return (given if given.is_absolute() else home / ".config") / file.removeprefix("config:")


def _read(path: Path, *, is_bare: bool) -> str:
    try:
        text = path.read_bytes()[:_MOST_BYTES].decode("utf-8", "replace")
    except OSError:
        return ""
    if is_bare:
        return text.strip()
    found = _SETTING.search(text)
    return found[1] if found else ""
