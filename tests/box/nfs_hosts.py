"""The three boxes of hosts.py whose shared folder is a real NFSv4 mount, one client for each box.

The kernel's own server runs in the world's network, behind a short lease. Boxes are other clients
to it, as rented boxes are: each has its own cache, and locks pass through the server.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from hosts import NAMES, SYSTEM_PATH, Hosts, NotPermitted

SERVER = "10.99.0.100"
# Of its lease a server takes 90 s, and as long after its start nobody may open a file anew.
LEASE_S = 10
TOOLS = ("exportfs", "rpc.nfsd", "rpc.mountd", "nfsdcld", "mount.nfs4")
# As platforms mount it: a client waits for its server as long as it takes.
OPTIONS = "vers=4.2,nosharecache,hard"
KINDS = ("nfs4", "nfsd")
PREPARE = """
set -e
mount -t tmpfs none /var/lib/nfs
cd /var/lib/nfs
mkdir rpc_pipefs nfsdcld v4recovery
touch etab rmtab
mount -t rpc_pipefs none rpc_pipefs
mount -t nfsd none /proc/fs/nfsd
echo "$2" > /proc/fs/nfsd/nfsv4leasetime
echo "$2" > /proc/fs/nfsd/nfsv4gracetime
exportfs -o rw,fsid=0,no_subtree_check,no_root_squash,sync "10.99.0.0/24:$1"
"""
# Who answers the kernel: whose is an export, and which clients may reclaim after a restart.
HELPERS = (
    ("rpc.mountd", "-F", "-N", "3"),
    ("nfsdcld", "-F", "-p", "/var/lib/nfs/rpc_pipefs", "-s", "/var/lib/nfs/nfsdcld"),
)
START = ("rpc.nfsd", "-N", "3", "-V", "4.2", "-T", "-t", "8")
STOP = ("rpc.nfsd", "0")


class NfsHosts(Hosts):
    """Hosts whose `shared` is mounted from a server that can be stopped."""

    def __init__(self, folder: Path, names: Sequence[str] = NAMES) -> None:
        check_kernel()
        self._helpers: list[subprocess.Popen[bytes]] = []
        super().__init__(folder, names)

    @property
    def exported(self) -> Path:
        """The shared folder as the server has it: nothing here is older than what was written."""
        return self._backing("shared", "")

    def start_server(self) -> None:
        self._in_world(*START)

    def stop_server(self) -> None:
        """It forgets what is open and locked; clients say it again when it is back."""
        self._in_world(*STOP)

    def boot(self, name: str) -> None:
        super().boot(name)
        words = ["mount", "-t", "nfs4", "-o", OPTIONS, f"{SERVER}:/", str(self.shared)]
        done = self.run(name, words, check=False)
        if done.returncode:
            raise NotPermitted(f"no NFS mount: {done.stderr.decode().strip()}")

    def close(self) -> None:
        # The server ends last: a box that cannot say goodbye waits for it. Its threads are the
        # kernel's, and would outlive the world's processes.
        for name in list(self._inits):
            self.heal(name)
            self.halt(name)
        with contextlib.suppress(NotPermitted):
            self.stop_server()
        super().close()
        for helper in self._helpers:
            helper.kill()
            helper.communicate()

    def _wire(self) -> None:
        super()._wire()
        self._in_world("ip", "addr", "add", f"{SERVER}/24", "dev", "br0")

    def _install_disks(self) -> None:
        super()._install_disks()
        self._in_world("sh", "-c", PREPARE, "sh", str(self._disks / "shared"), str(LEASE_S))
        enter = ["nsenter", f"--target={self._world.pid}", "--mount", "--net"]
        for words in HELPERS:
            self._helpers.append(subprocess.Popen([*enter, *words], stdin=subprocess.DEVNULL))
        self.start_server()


def check_kernel() -> None:
    if missing := [tool for tool in TOOLS if not shutil.which(tool, path=SYSTEM_PATH)]:
        raise NotPermitted(f"not installed: {', '.join(missing)}")
    modprobe = shutil.which("modprobe", path=SYSTEM_PATH)
    if modprobe:
        subprocess.run([modprobe, "-aq", "nfsv4", "nfsd"], capture_output=True, check=False)
    known = Path("/proc/filesystems").read_text().split()
    if missing := [kind for kind in KINDS if kind not in known]:
        raise NotPermitted(f"this kernel has no {', '.join(missing)}")


@contextlib.contextmanager
def nfs_boxes(folder: Path, names: Sequence[str] = NAMES) -> Iterator[NfsHosts]:
    """Raises NotPermitted with the reason where this machine cannot have them."""
    hosts = NfsHosts(folder, names)
    try:
        yield hosts
    finally:
        hosts.close()
