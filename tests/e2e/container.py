"""A container without an engine: a root folder with a layer above it, and a first process.

Files that are written inside stay over `stop` and `start`, as those of a container do that is
stopped and started again. Its network is its own, so its sshd has port 22. It all ends with the
test's process.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import pytest
from waiting import LIMIT_S, until

T = TypeVar("T")

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENTRYPOINT = "/usr/local/bin/boxcar-box"
TOOLS = ("unshare", "nsenter", "ip", "mount", "chroot", "ssh", "ssh-keygen")

WORLD = """
set -e
ip link set lo up
mount -t tmpfs none "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
echo ready
exec cat
"""
BOOT = """
set -e
root=$1
shift
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
exec chroot "$root" env -i "$@"
"""


class Container:
    """`log` is what its first process said, from every start."""

    def __init__(self, world_pid: int, root: Path, folder: Path) -> None:
        self._world_pid = world_pid
        self._root = root
        self._log = folder / "log"
        self._log.touch()
        self.key = folder / "key"
        make_key(self.key)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def public_key(self) -> str:
        return self.key.with_suffix(".pub").read_text().strip()

    @property
    def log(self) -> str:
        return self._log.read_text()

    def seen(self, path: str | Path) -> Path:
        """Where a file of the container is seen from here, also while it is stopped."""
        return Path(f"/proc/{self._world_pid}/root{self._root}") / str(path).lstrip("/")

    # --- its life

    def start(self, *words: str, typed: bytes = b"", **env: str) -> None:
        """The entry point with these words, and nothing of this process's environment."""
        given = {"PATH": PATH, "PUBLIC_KEY": self.public_key} | env
        container = [f"{name}={value}" for name, value in given.items()]
        command = [
            *("nsenter", f"--target={self._world_pid}", "--mount", "--net", "--pid"),
            *("unshare", "--mount", "--pid", "--fork", "--kill-child"),
            *("sh", "-c", BOOT, "sh", str(self._root), *container, ENTRYPOINT, *words),
        ]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd="/"
            )
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError), self._process.stdin as stdin:
            stdin.write(typed)

    def stop(self) -> int:
        """As `docker stop` without a time limit: TERM, and wait. The first process's exit code."""
        os.kill(self.first_pid(), 15)
        return self.wait()

    def wait(self) -> int:
        assert self._process
        try:
            return self._process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end within {LIMIT_S:.0f} s: {self.log}") from None

    def first_pid(self) -> int:
        """Its first process, as this machine counts."""
        assert self._process
        # nsenter forks to enter a pid namespace, and unshare to make one.
        return _only_child(_only_child(self._process.pid))

    # --- inside

    def run(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """As `docker exec`: with nothing of the first process's environment."""
        enter = ["nsenter", f"--target={self.first_pid()}", "--all", "--root", "--wd"]
        return _run([*enter, *words], {"PATH": PATH} | env)

    def ssh_words(self) -> list[str]:
        """An ssh that knows nothing of the person's own keys and hosts."""
        # The test's own client, of a container that made its host key a moment ago.
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes")
        words = ["nsenter", f"--target={self._world_pid}", "--net", "ssh", "-F", "none"]
        words += [word for option in options for word in ("-o", option)]
        return [*words, "-o", "LogLevel=ERROR", "-i", str(self.key)]

    def ssh(self, command: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        return _run([*self.ssh_words(), "root@127.0.0.1", command], dict(os.environ), typed)

    def wait_for_ssh(self) -> None:
        self.wait_for("ssh", lambda: self.ssh("true").returncode == 0)

    def wait_for(self, what: str, look: Callable[[], T]) -> T:
        return until(look, lambda: f"{what}. {self.log}")


@contextlib.contextmanager
def a_container(lower: Path, folder: Path) -> Iterator[Container]:
    """One above the root file system `lower`, which is not written to. Skips where it cannot be."""
    if os.geteuid() != 0:
        pytest.skip("a container's sshd needs a real root")
    if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    layers = folder / "layers"
    layers.mkdir(parents=True)
    command = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
    world = subprocess.Popen(
        [*command, "sh", "-c", WORLD, "sh", str(lower), str(layers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with world:
        assert world.stdin and world.stdout and world.stderr
        if world.stdout.readline() != b"ready\n":
            pytest.skip(f"no namespaces or overlays are permitted: {world.stderr.read().decode()}")
        yield Container(_only_child(world.pid), layers / "root", folder)
        world.stdin.close()


def make_key(path: Path, kind: str = "ed25519") -> None:
    words = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(path)]
    subprocess.run(words, check=True, capture_output=True)


def _run(
    words: list[str], env: Mapping[str, str], typed: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, env=env, input=typed, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


def _only_child(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    until(lambda: len(children.read_text().split()) == 1, f"{pid} has one child")
    return int(children.read_text())
