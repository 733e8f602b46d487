"""The process that becomes an attempt's launcher, in the kernel's group of the attempt."""

from __future__ import annotations

import os

from boxcar.shared import exit_codes
from onbox.machine import cgroup, process
from onbox.machine.light import signal

# What the wrapper handles, and passes on.
_PASSED_ON = (signal.SIGTERM, signal.SIGINT)


class Launcher:
    """`group` is None where there may be none."""

    def __init__(self, argv: tuple[str, ...], cookie: str) -> None:
        self.argv = argv
        self.group: str | None = cgroup.create(lambda: cgroup.name_of(cookie))

    def become(self, environ: dict[str, str], log_fd: int) -> int:
        """Start it with this environment, and this log as its terminal; its process id.

        Without `subprocess`, which costs more than the start itself.
        """
        parent = os.getpid()
        # Until it is another program: a handler of ours would swallow what the child is told.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
        pid = os.fork()
        if pid == 0:
            try:
                for number in _PASSED_ON:
                    signal.signal(number, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                move_in(self.group, parent)
                replace(self.argv, environ, log_fd)
            finally:
                os._exit(exit_codes.NOT_FOUND)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return pid

    def end(self) -> None:
        """It is not needed: what was made for it goes."""
        if self.group:
            cgroup.remove(self.group)


def move_in(group: str | None, parent: int) -> None:
    """In the child: a session of its own, that ends with its parent, and the group."""
    os.setsid()
    process.die_with_parent()
    if os.getppid() != parent:
        os._exit(exit_codes.NOT_FOUND)  # it died before that
    if group:
        cgroup.enter(group)


def replace(argv: tuple[str, ...], environ: dict[str, str], log_fd: int) -> None:
    """In the child: the launcher takes its place. Returns where that cannot be, which it logs."""
    # Python ignores these, and what is started would do so too.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    take_log(log_fd)
    try:
        os.execvpe(argv[0], argv, environ)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())


def take_log(fd: int) -> None:
    """It becomes the terminal, and is closed otherwise; nothing can be read."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for one, to in ((nothing, (0,)), (fd, (1, 2))):
        for at in to:
            os.dup2(one, at)
        os.close(one)
