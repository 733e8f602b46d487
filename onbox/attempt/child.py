"""The process that becomes an attempt's launcher, in the kernel's group of the attempt."""

from __future__ import annotations

import os
import signal

from boxcar.shared import exit_codes
from boxcar.shared.cell.launch import Start
from onbox.machine import cgroup, process

# What the program of the attempt handles, and passes on.
_PASSED_ON = (signal.SIGTERM, signal.SIGINT)


def become(start: Start, workdir: str, log_fd: int, group: str | None) -> int:
    """Start it with this log as its terminal; its process id. `group` None: where there is none."""
    parent = os.getpid()
    # Until it is another program: a handler of ours would swallow what the child is told.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    pid = os.fork()
    if pid == 0:
        try:
            for number in _PASSED_ON:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            _move_in(group, parent)
            _replace(start, workdir, log_fd)
        finally:
            os._exit(exit_codes.NOT_FOUND)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def _move_in(group: str | None, parent: int) -> None:
    """In the child: a session of its own, that ends with its parent, and the group."""
    os.setsid()
    process.die_with_parent()
    if os.getppid() != parent:
        os._exit(exit_codes.NOT_FOUND)  # it died before that
    if group:
        cgroup.enter(group)


def _replace(start: Start, workdir: str, log_fd: int) -> None:
    """In the child: the launcher takes its place. Returns where that cannot be, which it logs."""
    # Python ignores these, and what is started would do so too.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    _take_log(log_fd)
    program = start.argv[0]
    try:
        os.chdir(workdir)
        os.execvpe(program, start.argv, start.environ)
    except OSError as error:
        os.write(2, f"{error.filename or program}: {error.strerror}\n".encode())


def _take_log(fd: int) -> None:
    """It becomes the terminal, and is closed otherwise; nothing can be read."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for one, to in ((nothing, (0,)), (fd, (1, 2))):
        for at in to:
            os.dup2(one, at)
        os.close(one)
