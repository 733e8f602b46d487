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

# Of the environment: the number of the socket at which it is told, or that it is only ASKED whether
# it comes here; what PYTHONPATH and the cookie are to be; and the archive that is read already.
GATE = "BOXCAR_GATE"
PYTHONPATH = "BOXCAR_GATE_PYTHONPATH"
COOKIE = "BOXCAR_GATE_ATTEMPT_ID"
READ = "BOXCAR_GATE_READ"
ASKED = "asked"
# What it ends with where it is only asked, and where it is not let in.
COMES = 86
NOT_LET_IN = 127
TAKEN = b"t"
ARCHIVE = "gate.zip"
MODULE = "sitecustomize"
_REAL = {PYTHONPATH: "PYTHONPATH", COOKIE: "BOXCAR_ATTEMPT_ID"}


def closed(environ: "dict[str, str]", archive: str, waits_as: str, read: str) -> "dict[str, str]":
    """The environment in which an interpreter waits that is to have `environ` then.

    `waits_as` is its cookie until then, `read` an archive of ours in its PYTHONPATH.
    """
    kept = {ours: environ[name] for ours, name in _REAL.items() if name in environ}
    own = {"PYTHONPATH": archive, "BOXCAR_ATTEMPT_ID": waits_as, READ: read}
    return {**environ, **kept, **own}


def wait() -> None:
    """Returns at its turn, with the cell's log as its terminal and the cell's environment."""
    told = os.environ.pop(GATE)
    if told == ASKED:
        os._exit(COMES)
    try:
        _wait(int(told))
    except BaseException:
        os._exit(NOT_LET_IN)  # another is started in its place


def _wait(fd: int) -> None:
    import _socket

    theirs, archive = _socket.socket(fileno=fd), os.environ["PYTHONPATH"]
    folder = os.getcwd()  # noqa: PTH109  (without Path, here and below)
    _read(os.environ.pop(READ))
    before = _found()
    data, ancillary, _, _ = theirs.recvmsg(1, _socket.CMSG_SPACE(4))
    if not data or _found() != before:
        os._exit(NOT_LET_IN)
    os.chdir(folder)  # another may lie there by now
    log = int.from_bytes(ancillary[0][2][:4], sys.byteorder)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    for ours, name in _REAL.items():
        os.environ.pop(name)
        if ours in os.environ:
            os.environ[name] = os.environ.pop(ours)
    _set_path(archive)
    theirs.sendall(TAKEN)
    theirs.close()


def _read(archive: str) -> None:
    """Its list takes a millisecond, and is looked into by each import of a script's."""
    try:
        sys.path_importer_cache[archive] = zipimport.zipimporter(archive)
    except ImportError:
        return  # it is none, or not there


def _found() -> "list[tuple[str, int]]":
    """What an installation of packages changes: who was started before it starts anew."""
    found = []
    for folder in sys.path:
        try:
            found.append((folder, os.stat(folder).st_mtime_ns))  # noqa: PTH116
        except OSError:
            found.append((folder, 0))
    return found


def _set_path(archive: str) -> None:
    """As `site` makes it of PYTHONPATH: whole paths, each once, in the place of the archive."""
    sys.path_importer_cache.pop(archive, None)
    at, said = sys.path.index(archive), os.environ.get("PYTHONPATH")
    own = [os.path.abspath(one) for one in said.split(os.pathsep)] if said else []  # noqa: PTH100
    own = list(dict.fromkeys(own))
    rest = [path for path in sys.path[at + 1 :] if path not in own]
    sys.path[at:] = [*own, *rest]


if __name__ == MODULE and GATE in os.environ:
    wait()
    del sys.modules[__name__]
    __import__(MODULE)
