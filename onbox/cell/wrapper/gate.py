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
# Beside packages, a .pth file may hold lines that each start of a Python runs before it comes here.
# These, of setuptools, virtualenv, namespaces and editable installations, do the same at any time.
_PACKAGES = ("site-packages", "dist-packages")
_RUN = (b"import ", b"import\t", b"\xef\xbb\xbf")
_ALIKE = ("distutils-precedence.pth", "_virtualenv.pth", "__editable__")
_ALIKE_ENDS = "nspkg.pth"


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

    theirs, archive = _socket.socket(fileno=fd), os.environ["PYTHONPATH"]
    folder = os.getcwd()  # noqa: PTH109  (without Path, here and below)
    _read(os.environ.pop(READ))
    data, ancillary, _, _ = theirs.recvmsg(1, _socket.CMSG_SPACE(4))
    # What its start has said would have been in the log.
    has_said = os.fstat(1).st_size or os.fstat(2).st_size
    if not data or has_said or not is_unchanged(before):
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
    at, said = sys.path.index(archive), os.environ.get("PYTHONPATH")
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
