"""Staged as `sitecustomize`, in an archive of its own: an interpreter that waits for its turn.

Python imports a module of that name as the last thing before it reads what it was told to run. This
one is found first, by PYTHONPATH, and waits there until the cell's turn has come: so the start of a
Python overlaps with the cell before, and nothing of a project was read or could be found. Then all
is as it would have been without it, and a `sitecustomize` of somebody else's is imported.

Whoever starts an interpreter so knows that it comes here: see gate_proof.py. The training's Python
runs this, which may be older than ours, and nothing that it imports may be seen later by a script.
"""

import os
import sys
import zipimport  # which every Python has loaded

# Not typing's: see above.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Mapping

# Of the environment: the number of the socket at which it is told, or that it is only ASKED whether
# it comes here; and the archive that is read already.
GATE = "BOXCAR_GATE"
READ = "BOXCAR_GATE_READ"
ASKED = "asked"
# Variables that it is told at its turn: ours, which name a cell and what is its, and where modules
# lie. A Python begins alike whatever they are.
_OURS, _MODULES = "BOXCAR_", "PYTHONPATH"
# In place of the words behind the script, where they are told at its turn, too.
TOLD_LATE = "..."
# What it ends with where it is only asked, and where it is not let in.
COMES = 86
NOT_LET_IN = 127
GO, TAKEN = b"g", b"t"
ARCHIVE = "gate.zip"
MODULE = "sitecustomize"
_SOME_BYTES = 65536
LENGTH_BYTES = 8
# Beside packages, a .pth file may hold lines that each start of a Python runs before it comes here.
# These, of setuptools, virtualenv, namespaces and editable installations, do the same at any time.
_PACKAGES = ("site-packages", "dist-packages")
_RUN = (b"import ", b"import\t", b"\xef\xbb\xbf")
_ALIKE = ("distutils-precedence.pth", "_virtualenv.pth", "__editable__")
_ALIKE_ENDS = "nspkg.pth"


def told_late(environ: "Mapping[str, str]") -> "dict[str, str]":
    """Of all variables those that it is told at its turn."""
    return {name: value for name, value in environ.items() if is_told_late(name)}


def is_told_late(name: str) -> bool:
    return name.startswith(_OURS) or name == _MODULES


def wait() -> None:
    """Returns at its turn, with the cell's log as its terminal and the cell's environment."""
    told = os.environ.pop(GATE)
    try:
        found = _found()
        if not _runs_alike(found):
            os._exit(NOT_LET_IN)
        if told == ASKED:
            os.write(1, repr((os.getpid(), found)).encode())
            os._exit(COMES)
        _wait(int(told), found)
    except BaseException:
        os._exit(NOT_LET_IN)  # another is started in its place


def _wait(fd: int, before: "list[tuple[str, int]]") -> None:
    import _socket

    theirs, archive = _socket.socket(fileno=fd), os.environ[_MODULES]
    folder = os.getcwd()  # noqa: PTH109  (without Path, here and below)
    _read(os.environ.pop(READ))
    told = heard(theirs)
    # What its start has said would have been in the log.
    has_said = os.fstat(1).st_size or os.fstat(2).st_size
    if not told or has_said or not is_unchanged(before):
        os._exit(NOT_LET_IN)
    words, environ, log = told
    os.chdir(folder)  # another may lie there by now
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    for name in told_late(os.environ):
        del os.environ[name]
    os.environ.update(environ)
    if words:
        _take_words(words[1:])
    _set_path(archive)
    if theirs.recv(1) != GO:
        os._exit(NOT_LET_IN)
    theirs.sendall(TAKEN)
    theirs.close()


def heard(theirs: "socket") -> "tuple[list[str], dict[str, str], int] | None":
    """The words, the variables and the open log that are said there; None where that ends before it
    is whole: whoever is killed while it says them has started nothing.
    """
    import _socket

    first, ancillary, _, _ = theirs.recvmsg(1, _socket.CMSG_SPACE(4))
    length = int.from_bytes(_all_of(theirs, LENGTH_BYTES), "big")
    said = _all_of(theirs, length)
    if not first or not said or len(said) < length:
        return None
    count, *parts = [os.fsdecode(part) for part in said.split(b"\0")]
    words, pairs = parts[: int(count)], parts[int(count) :]
    log = int.from_bytes(ancillary[0][2][:4], sys.byteorder)
    return words, dict(pair.split("=", 1) for pair in pairs), log


def _all_of(theirs: "socket", count: int) -> bytes:
    """So many bytes, or fewer where there are no more."""
    said = b""
    while len(said) < count:
        more = theirs.recv(min(_SOME_BYTES, count - len(said)))
        if not more:
            break
        said += more
    return said


def _take_words(words: "list[str]") -> None:
    """In place of those behind the script that it was started with."""
    before = len(sys.argv) - 1
    sys.argv[1:] = words
    if hasattr(sys, "orig_argv"):  # from Python 3.10 on
        sys.orig_argv[len(sys.orig_argv) - before :] = words


def _read(archive: str) -> None:
    """Its list takes a millisecond, and is looked into by each import of a script's."""
    try:
        sys.path_importer_cache[archive] = zipimport.zipimporter(archive)
    except ImportError:
        return  # it is none, or not there


def _found() -> "list[tuple[str, int]]":
    """What an installation of packages changes, and when it did; 0 for what is not there."""
    site = sys.modules["site"]
    user = [site.USER_SITE] if site.ENABLE_USER_SITE and site.USER_SITE else []
    paths = []
    for folder in [*sys.path, *user]:
        paths.append(folder)
        if folder.endswith(_PACKAGES) and os.path.isdir(folder):  # noqa: PTH112
            names = sorted(os.listdir(folder))  # noqa: PTH208
            paths += [f"{folder}/{name}" for name in names if name.endswith(".pth")]
    return [(path, _changed_ns(path)) for path in paths]


def _changed_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116
    except OSError:
        return 0


def is_unchanged(found: "list[tuple[str, int]]") -> bool:
    """Whether all of it is as it was."""
    return all(_changed_ns(path) == changed_ns for path, changed_ns in found)


def _runs_alike(found: "list[tuple[str, int]]") -> bool:
    for path, _ in found:
        name = path.rpartition("/")[2]
        if not name.endswith(".pth") or name.startswith(_ALIKE) or name.endswith(_ALIKE_ENDS):
            continue
        with open(path, "rb") as file:  # noqa: PTH123
            if any(line.startswith(_RUN) for line in file):
                return False
    return True


def _set_path(archive: str) -> None:
    """As `site` makes it of PYTHONPATH: whole paths, each once, in the place of the archive."""
    sys.path_importer_cache.pop(archive, None)
    at, said = sys.path.index(archive), os.environ.get(_MODULES)
    own = [os.path.abspath(one) for one in said.split(os.pathsep)] if said else []  # noqa: PTH100
    own = list(dict.fromkeys(own))
    rest = [path for path in sys.path[at + 1 :] if path not in own]
    sys.path[at:] = [*own, *rest]


def _make_way() -> None:
    """For somebody else's module of this name."""
    own = sys.modules.pop(__name__)
    try:
        __import__(MODULE)
    except BaseException:
        sys.modules[__name__] = own  # zipimport of 3.8 and 3.9 takes out what it has put there
        raise


if __name__ == MODULE:
    if GATE in os.environ:
        wait()
    else:  # an interpreter within one that was let in
        _set_path(os.path.dirname(__file__))  # noqa: PTH120
    _make_way()
