"""One container: a process in namespaces of its own, whose image is this machine's files.

What it writes outside its mounts goes into a layer that ends with it. It has its own /proc, /dev,
/tmp and /dev/shm (64 MiB, as a container runtime makes it). The network and the users are this
machine's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

PYTHON = Path(sys.executable).parent
PATH = f"{PYTHON}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_NOT_PULLED = ("usr/bin", "usr/local/bin", "bin", str(PYTHON).lstrip("/"))


@dataclass(frozen=True)
class Mount:
    source: Path | None  # None: memory
    path: str
    read_only: bool = False
    size: str = ""


@dataclass
class Container:
    """`start()`, then `wait()`; `signal()` meanwhile."""

    folder: Path
    command: list[str]
    env: dict[str, str]
    mounts: list[Mount]
    working_dir: str = "/"
    termination_log: str = "/dev/termination-log"
    hostname: str = "pod"
    lacks: str = ""  # programs that its image has not, as a pattern: python*
    out_of_memory: bool = False
    is_killed: bool = False
    process: asyncio.subprocess.Process | None = field(default=None, repr=False)

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def message(self) -> str:
        """What it left as its last word, at most 4096 bytes."""
        with contextlib.suppress(OSError):
            return (self.folder / "message").read_bytes()[:4096].decode(errors="replace")
        return ""

    async def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "message").write_bytes(b"")
        for name in ("layer", "root"):
            (self.folder / name).mkdir(exist_ok=True)
        script = self.folder / "start.sh"
        # What `unshare` itself has to say of a child that was killed is no line of the log.
        self.log.touch()
        log = shlex.quote(str(self.log))
        script.write_text(f"exec >>{log} 2>&1\n{self._script()}")
        with (self.folder / "unshare").open("ab") as own:
            self.process = await asyncio.create_subprocess_exec(
                *("unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child"),
                *("/bin/sh", str(script), *self.command),
                env={"PATH": PATH, "HOME": "/root", "HOSTNAME": self.hostname, **self.env},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=own,
                stderr=own,
                start_new_session=True,
                cwd="/",
            )

    def _script(self) -> str:
        quoted = {"layer": self.folder / "layer", "root": self.folder / "root"}
        layer, root = (shlex.quote(str(quoted[name])) for name in ("layer", "root"))
        lines = [
            "set -e",
            f"mount -t tmpfs layer {layer}; mkdir {layer}/up {layer}/work",
            *self._hidden(layer),
            f"mount -t overlay -o lowerdir=/,upperdir={layer}/up,workdir={layer}/work pod {root}",
            f"mount -t proc proc {root}/proc; mount -t tmpfs tmp {root}/tmp",
            f"chmod 1777 {root}/tmp; mount --rbind /sys {root}/sys",
            *([] if self.lacks else _image_below_tmp(root)),
            f"mount -t tmpfs dev {root}/dev; cd {root}/dev; mkdir pts shm",
            f"touch {' '.join(_DEVICES)}",
            *(f"mount --bind /dev/{name} {name}" for name in _DEVICES),
            "ln -s /proc/self/fd fd; ln -s fd/0 stdin; ln -s fd/1 stdout; ln -s fd/2 stderr",
            "mount -t devpts -o newinstance,ptmxmode=0666 pts pts; ln -s pts/ptmx ptmx",
            "mount -t tmpfs -o size=64m shm shm; cd /",
            f"hostname {shlex.quote(self.hostname)}",
        ]
        for mount in sorted(self.mounts, key=lambda one: one.path):
            lines += _mounted(mount, root)
        last = Mount(self.folder / "message", self.termination_log)
        lines += _mounted(last, root)
        inside = shlex.quote(f'cd {shlex.quote(self.working_dir)} && exec "$@"')
        lines.append(f'exec chroot {root} /bin/sh -c {inside} sh "$@"')
        return "\n".join(lines) + "\n"

    def _hidden(self, layer: str) -> list[str]:
        """What the image has not: what overlayfs takes for a removed file."""
        if not self.lacks:
            return []
        lines = []
        for folder in _NOT_PULLED:
            where = f"{layer}/up/{folder}"
            lines.append(f"[ -L /{folder} ] || mkdir -p {where}")
            for one in sorted(Path("/", folder).glob(self.lacks)):
                lines.append(f"[ -L /{folder} ] || mknod {where}/{one.name} c 0 0")
        return lines

    @property
    def pid(self) -> int | None:
        """The container's process 1, as this machine numbers it."""
        if self.process is None or self.process.returncode is not None:
            return None
        me = self.process.pid
        with contextlib.suppress(OSError, ValueError):
            return int(Path(f"/proc/{me}/task/{me}/children").read_text().split()[0])
        return None

    def signal(self, number: int) -> None:
        pid = self.pid
        self.is_killed |= pid is not None and number == signal.SIGKILL
        with contextlib.suppress(ProcessLookupError):
            if pid is not None:
                os.kill(pid, number)
            elif self.process is not None and number == signal.SIGKILL:
                self.process.kill()

    @property
    def cannot_start(self) -> bool:
        """Its image has not the program that it is to begin with."""
        return bool(self.lacks) and Path(self.command[0]).match(self.lacks)

    async def wait(self) -> int:
        """Its exit code; 128 and the number for a signal."""
        assert self.process is not None
        code = await self.process.wait()
        shutil.rmtree(self.folder / "root", ignore_errors=True)
        # Of a child that is killed unshare (2.38) says 1: it cannot unblock SIGKILL.
        return 137 if self.is_killed else 128 - code if code < 0 else code

    def inside(self, command: list[str]) -> list[str]:
        """The command that runs `command` in it."""
        pid = str(self.pid or 0)
        spaces = ("--mount", "--pid", "--uts", "--ipc", "--root", f"--wdns={self.working_dir}")
        return ["nsenter", "--target", pid, *spaces, "--", *command]


def _image_below_tmp(root: str) -> list[str]:
    """The Python of these tests is part of every image, wherever the checkout lies."""
    if not Path(sys.prefix).is_relative_to("/tmp"):
        return []
    at, there = shlex.quote(sys.prefix), f"{root}{shlex.quote(sys.prefix)}"
    return [f"mkdir -p {there}; mount --rbind {at} {there}"]


def _mounted(mount: Mount, root: str) -> list[str]:
    at = root + shlex.quote(mount.path)
    if mount.source is None:
        size = f" -o size={mount.size}" if mount.size else ""
        return [f"mkdir -p {at}; mount -t tmpfs{size} memory {at}"]
    source = shlex.quote(str(mount.source))
    make = f"mkdir -p {at}"
    if mount.source.is_file():
        make = f"mkdir -p $(dirname {at}); touch {at}"
    lines = [f"{make}; mount --bind {source} {at}"]
    return [*lines, f"mount -o remount,ro,bind {at}"] if mount.read_only else lines
