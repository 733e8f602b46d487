"""The two archives of a release: the agent, and what a train script may import from Boxcar.

Same inputs, same bytes: names are sorted, and times, modes and system are fixed. The compressed
bytes also depend on the zlib of this Python, so another laptop may name the same content otherwise.
Only `.py` files travel (and certifi's certificates): what is compiled would fit one Python only.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import io
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

import boxcar
from boxcar.laptop.common import home
from boxcar.shared.disk import digest
from boxcar.shared.errors import InputError
from boxcar.shared.sentence import _

# import name -> distribution
DEPENDENCIES = {
    "certifi": "certifi",
    "idna": "idna",
    "pynvml": "nvidia-ml-py",
    "requests": "requests",
    "standardwebhooks": "standardwebhooks",
    "urllib3": "urllib3",
    "watchdog": "watchdog",
}
# Command lines, tests, other systems and what needs packages that do not travel. urllib3's SOCKS
# module warns on import when PySocks is missing; without the module requests takes it as "not
# supported" silently. Nor does charset_normalizer travel: it guesses encodings, for `.text` alone.
LEFT_OUT = (
    "certifi/__main__.py",
    "certifi/tests/",
    "idna/__main__.py",
    "idna/cli.py",
    "urllib3/contrib/",
    "watchdog/__main__.py",
    "watchdog/observers/fsevents",  # both need a module in C
    "watchdog/observers/kqueue.py",  # an agent asks the kernel on Linux only
    "watchdog/observers/read_directory_changes.py",
    "watchdog/observers/winapi.py",
    "watchdog/tricks/",
    "watchdog/utils/echo.py",
    "watchdog/utils/event_debouncer.py",
    "watchdog/utils/process_watcher.py",
    "watchdog/watchmedo.py",
)
DATA = ("boxcar/shared/zh.mo", "certifi/cacert.pem")
LICENSE_NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE")
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----\n[^-]+-----END CERTIFICATE-----\n")
MAIN = b"import sys\n\nfrom onbox.__main__ import main\n\nsys.exit(main())\n"
# The oldest time that a zip can say.
TIME = (1980, 1, 1, 0, 0, 0)
OLDEST_PYTHON = (3, 10)
# The highest level takes three times as long, for one part in two hundred; each verb that asks a
# box makes the archive.
LEVEL = 6


@functools.cache
def build_onbox() -> bytes:
    """The agent as a zipapp, with the pure-Python packages that it imports and their licences.

    Raises InputError where an installed package would not run on the agent's oldest Python.
    """
    check_pythons(DEPENDENCIES.values())
    files = {"__main__.py": MAIN} | _formats() | _tree(home.assets_root() / "onbox", "onbox")
    for name, distribution in DEPENDENCIES.items():
        files |= _dependency(name) | _licences(distribution)
    return _zip(files)


@functools.cache
def build_training() -> bytes:
    """What a train script may import: boxcar.shared and boxcar.training, alone."""
    return _zip(_formats() | _tree(_package() / "training", "boxcar/training"))


def file_name(stem: str, data: bytes, suffix: str) -> str:
    """A name that says its content, so that it is never overwritten under a live run."""
    return f"{stem}-{digest.short(digest.of_bytes(data))}{suffix}"


def check_pythons(distributions: Iterable[str]) -> None:
    """pip chose them for this Python; on a box with an older one the agent would not even start."""
    problems = []
    for name in distributions:
        installed = importlib.metadata.distribution(name)
        needs = str(installed.metadata.json.get("requires_python", ""))
        least = re.search(r">=\s*(\d+)\.(\d+)", needs)
        if least and (int(least[1]), int(least[2])) > OLDEST_PYTHON:
            problems.append(
                f"{name} {installed.version} needs Python {needs}, and the agent has to run on "
                f"3.10 too; type: pip install '{name}<{installed.version}'"
            )
    if problems:
        raise InputError(problems)


def _package() -> Path:
    return Path(boxcar.__file__).resolve().parent


def _formats() -> dict[str, bytes]:
    top = {"boxcar/__init__.py": (_package() / "__init__.py").read_bytes()}
    return top | _tree(_package() / "shared", "boxcar/shared")


def _dependency(name: str) -> dict[str, bytes]:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(_("{name} is not installed with boxcar", name=name), name=name)
    origin = Path(spec.origin)
    if origin.name == "__init__.py":
        return _tree(origin.parent, name)
    return {origin.name: origin.read_bytes()}


def _licences(distribution: str) -> dict[str, bytes]:
    listed = importlib.metadata.distribution(distribution).files or ()
    return {
        f"licenses/{distribution}/{file.name}": file.read_binary()
        for file in listed
        if file.name.upper().startswith(LICENSE_NAMES) and ".dist-info" in file.parts[0]
    }


def _tree(folder: Path, prefix: str) -> dict[str, bytes]:
    files = {f"{prefix}/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*")}
    return {name: _content(path) for name, path in files.items() if _travels(name)}


def _content(path: Path) -> bytes:
    """The file; of certifi's roots only the certificates. What stands above each is 24 kB."""
    data = path.read_bytes()
    return b"".join(_CERTIFICATE.findall(data)) if path.suffix == ".pem" else data


def _travels(name: str) -> bool:
    return (name.endswith(".py") and not name.startswith(LEFT_OUT)) or name in DATA


def _zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, TIME)
            entry.create_system = 3  # Unix, wherever this runs: the mode below is Unix
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, files[name], zipfile.ZIP_DEFLATED, compresslevel=LEVEL)
    return buffer.getvalue()
