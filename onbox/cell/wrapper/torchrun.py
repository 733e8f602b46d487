"""torchrun, loaded before its turn: `TRAINING_PYTHON torchrun.py AFTER_S SOCKET`, no module.

What prepared.py has prepared is this meanwhile: it imports torch, as the launcher of each cell
does, while the cell before runs. Nothing of a project is read or run before its turn: the ranks are
interpreters that torchrun starts then. Where anything is not as it was when it was loaded, it
becomes the launcher as that would have been started.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import select
import socket
import sys
import threading
from pathlib import Path
from types import ModuleType

MODULE = "torch.distributed.run"
_NOT_FOUND = 127
# Of the environment: what the loader of programs, Python and torch look at while they start, and a
# launcher acts by. A torch that only PYTHONPATH leads to is not found before its turn.
_LOOKED_AT = (
    *("LD_", "LC_", "LANG", "LOGLEVEL", "PYTHON", "TORCH_LOGS", "TORCH_DISTRIBUTED_DEBUG"),
    *("TORCH_CPP_LOG_LEVEL", "TORCH_SHOW_CPP", "TORCH_DEVICE_BACKEND", "TORCH_USE_RTLD"),
)
# To a training on all cores. Not more: it holds the interpreter's lock, which who is let in needs.
_GIVES_WAY = 5
_FIRST_TO_GO = "1000"
_OOM_SCORE = Path("/proc/self/oom_score_adj")
# Not typing's: its Python may be older than ours. The command, its environment and its log.
TYPE_CHECKING = False
if TYPE_CHECKING:
    Said = tuple[tuple[str, ...], dict[str, str], int]


def main(after_s: float, fd: int) -> None:
    all_well = threading.Event()
    # Registered first and so called last: behind what the libraries register for their end.
    atexit.register(_end_at_once, all_well)
    prepared = _of_ours("onbox.cell.wrapper.prepared")
    said = _load_until_said(prepared, socket.socket(fileno=fd), after_s)
    if said is None:
        os._exit(_NOT_FOUND)
    argv, environ, log_fd = said[0], _coerced(said[1]), said[2]
    if MODULE not in sys.modules or argv[1:3] != ("-m", MODULE) or _is_changed(environ):
        prepared.launcher.replace(argv, environ, log_fd)
        os._exit(_NOT_FOUND)
    prepared.launcher.take_log(log_fd)
    _run(argv, environ)
    all_well.set()


def _load_until_said(prepared: ModuleType, theirs: socket.socket, after_s: float) -> Said | None:
    """What it is to become, with torch there if it was begun in time; None for an end."""
    before = _change_oom_score(_FIRST_TO_GO)
    loading = threading.Thread(target=_load, daemon=True)
    is_late = bool(select.select([theirs], [], [], after_s)[0])
    if not is_late:
        loading.start()
    said: Said | None = prepared.received(theirs)
    if said and not is_late:
        _hurry(loading)
        loading.join()
    if before:
        _change_oom_score(before)
    return said


def _of_ours(name: str) -> ModuleType:
    """From beside this script, and nothing else from there: neither torch nor a rank finds it."""
    folder = str(Path(__file__).resolve().parent)
    sys.path[:] = [folder, *(path for path in sys.path if path != folder)]
    writes_none, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)
        sys.dont_write_bytecode = writes_none


def _change_oom_score(to: str) -> str:
    """Where memory runs out it is this that goes, and no training. What it was; '' if unknown."""
    before = ""
    with contextlib.suppress(OSError):
        before = _OOM_SCORE.read_text().strip()
        _OOM_SCORE.write_text(to)
    return before


def _load() -> None:
    # This thread alone, as Linux has it: for the ranks it could not be taken back.
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, 0, _GIVES_WAY)
    # Where it cannot be imported, the launcher that is started anew says so.
    with contextlib.suppress(BaseException):
        importlib.import_module(MODULE)


def _hurry(loading: threading.Thread) -> None:
    """Somebody waits for it now. Only a privileged user may."""
    with contextlib.suppress(OSError):
        if sys.platform == "linux" and loading.native_id:
            os.setpriority(os.PRIO_PROCESS, loading.native_id, 0)


def _coerced(environ: dict[str, str]) -> dict[str, str]:
    """With what Python itself sets where no locale is said, here as there (PEP 538)."""
    return {name: os.environ[name] for name in ("LC_CTYPE",) if name in os.environ} | environ


def _is_changed(environ: dict[str, str]) -> bool:
    names = {*environ, *os.environ} - {"PYTHONPATH"}
    differ = (name for name in names if environ.get(name) != os.environ.get(name))
    return any(name.startswith(_LOOKED_AT) for name in differ)


def _run(argv: tuple[str, ...], environ: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environ)
    module = sys.modules[MODULE]
    sys.argv[:] = [str(module.__file__), *argv[3:]]
    module.main()


def _end_at_once(all_well: threading.Event) -> None:
    """To take down an interpreter with torch in it takes half a second."""
    if all_well.is_set():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
