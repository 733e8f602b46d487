"""Real Slurm for tests: the distribution's programs in a folder and on ports of their own.

Two nodes of this machine with two pretended GPUs each; the partition `gpu` is preempted by `hot`.
Every daemon is a child of the test in the foreground, and is ended by its process. What a test of
Boxcar needs of it is the environment: SLURM_CONF.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from waiting import LIMIT_S, until

from bootstrap import SLURM

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")
OF_ACCOUNTING = ("slurmdbd", "mariadbd", "mariadb-install-db", "mariadb-admin", "sacctmgr")
HOW = f"apt-get install {' '.join(SLURM)}"
# What a requeue costs each time, because the script that asked for it ignores SIGTERM.
_KILL_WAIT_S = 20
_FIRST_PORT, _PORTS, _LAST_PORT = 26000, 10, 26900
_CONF = """
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/sock
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/d-%n.pid
SlurmctldLogFile={folder}/log/ctld
SlurmdLogFile={folder}/log/d-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobRequeue=1
KillWait={kill_wait_s}
MinJobAge=300
MaxArraySize=1001
ReturnToService=2
MpiDefault=none
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobAcctGatherType=jobacct_gather/none
GresTypes=gpu
{accounting}
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={n1} CPUs=2 RealMemory=2000 Gres=gpu:2
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={n2} CPUs=2 RealMemory=2000 Gres=gpu:2
PartitionName=gpu Nodes=n1,n2 Default=YES MaxTime=1:00:00 State=UP PriorityTier=1
PartitionName=hot Nodes=n1,n2 MaxTime=1:00:00 State=UP PriorityTier=10 PreemptMode=OFF
"""
_DBD = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge/sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd}
SlurmUser=root
LogFile={folder}/log/dbd
PidFile={folder}/dbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct
"""
# AuthInfo alone ends in 'Protocol authentication error'.
_WITH_ACCOUNTING = """AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd}
AccountingStoragePass={folder}/munge/sock"""


def skip_where_it_is_missing(*, accounting: bool = False) -> None:
    wanted = (*PROGRAMS, *(OF_ACCOUNTING if accounting else ()))
    if missing := [name for name in wanted if shutil.which(name, path=path_of_daemons()) is None]:
        pytest.skip(f"not installed: {', '.join(missing)} ({HOW})")
    if os.getuid() != 0:
        pytest.skip("Slurm's daemons need root")


@dataclass
class Cluster:
    """`with cluster(...)` makes one."""

    folder: Path
    port: int
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *words: str, check: bool = True) -> str:
        """What a command of Slurm says."""
        done = subprocess.run(
            words, env=self._environ(), capture_output=True, text=True, check=False
        )
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def jobs(self) -> dict[str, str]:
        """The state of each task that is known still, such as 3_0: RUNNING."""
        rows = self.run("squeue", "-h", "-r", "-t", "all", "-o", "%i|%T").split()
        return dict(row.split("|", 1) for row in rows)

    def states(self) -> set[str]:
        return set(self.jobs().values())

    def stop_controller(self) -> None:
        """As an administrator does: what runs on the nodes goes on. One that is killed has lost the
        jobs of its last seconds.
        """
        self._end("slurmctld")

    def start_controller(self) -> None:
        self._start("slurmctld", "slurmctld", "-D", "-f", self.env["SLURM_CONF"])
        until(lambda: "UP" in self.run("scontrol", "ping", check=False), "slurmctld answers")
        # Before its nodes have answered it refuses what they could run.
        states = ("sinfo", "-h", "-o", "%t")
        until(lambda: "unk" not in self.run(*states), lambda: self.run(*states))

    @contextlib.contextmanager
    def without_a_kill(self) -> Iterator[None]:
        """Whatever is told to end may take its time, however busy the machine is."""
        self._set_kill_wait(_KILL_WAIT_S, round(LIMIT_S))
        try:
            yield
        finally:
            self._set_kill_wait(round(LIMIT_S), _KILL_WAIT_S)

    def _set_kill_wait(self, was_s: int, wait_s: int) -> None:
        conf = self.folder / "slurm.conf"
        conf.write_text(conf.read_text().replace(f"KillWait={was_s}\n", f"KillWait={wait_s}\n"))
        self.run("scontrol", "reconfigure")
        said = f"KillWait                = {wait_s} sec"
        until(lambda: said in self.run("scontrol", "show", "config"), said)

    def _start(self, name: str, *words: str) -> None:
        log = (self.folder / "log" / f"{name}.out").open("ab")
        with log:
            self.daemons[name] = subprocess.Popen(
                words,
                env=self._environ(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _end(self, name: str, number: int = signal.SIGTERM) -> None:
        daemon = self.daemons.pop(name, None)
        if daemon is not None:
            daemon.send_signal(number)
            daemon.wait()

    def _environ(self) -> dict[str, str]:
        socket_ = {"MYSQL_UNIX_PORT": str(self.folder / "db.sock")}
        return {**os.environ, "PATH": path_of_daemons(), **self.env, **socket_}

    def up(self, *, accounting: bool = False) -> None:
        for name in ("state", "spool-n1", "spool-n2", "log", "munge", "db", "dev"):
            (self.folder / name).mkdir(parents=True)
        self.folder.chmod(0o755)
        self._munge()
        self._configure(accounting=accounting)
        if accounting:
            self._accounting()
        self._start("slurmctld", "slurmctld", "-D", "-c", "-f", self.env["SLURM_CONF"])
        for node in ("n1", "n2"):
            self._start(node, "slurmd", "-D", "-N", node, "-f", self.env["SLURM_CONF"])
        until(lambda: self._idle() == 2, lambda: self.run("sinfo", "-R", check=False))

    def dead(self) -> list[str]:
        """The daemons that ended by themselves."""
        return [name for name, daemon in self.daemons.items() if daemon.poll() is not None]

    def _idle(self) -> int:
        assert not self.dead(), f"{self.dead()} ended; see {self.folder}/log"
        said = self.run("sinfo", "-h", "-p", "gpu", "-t", "idle", "-o", "%D", check=False)
        return int(said or 0) if said.strip().isdigit() else 0

    def _munge(self) -> None:
        folder = self.folder / "munge"
        (folder / "key").write_bytes(secrets.token_bytes(1024))
        (folder / "key").chmod(0o400)
        folder.chmod(0o711)
        files = ("--socket", "sock"), ("--key-file", "key"), ("--pid-file", "pid")
        files += ("--log-file", "log"), ("--seed-file", "seed")
        words = [f"{option}={folder / name}" for option, name in files]
        self._start("munged", "munged", "--force", "--foreground", *words)
        until((folder / "sock").exists, "munged answers")

    def _configure(self, *, accounting: bool) -> None:
        numbers = {
            "port": self.port,
            "dbd": self.port + 1,
            "n1": self.port + 2,
            "n2": self.port + 3,
        }
        values = {"folder": self.folder, "host": socket.gethostname().split(".")[0], **numbers}
        values["kill_wait_s"] = _KILL_WAIT_S
        store = "AccountingStorageType=accounting_storage/none"
        store = _WITH_ACCOUNTING.format(**values) if accounting else store
        (self.folder / "slurm.conf").write_text(_CONF.format(**values, accounting=store))
        for number in range(2):
            device = self.folder / "dev" / f"nvidia{number}"
            os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        gres = f"NodeName=n[1-2] Name=gpu File={self.folder}/dev/nvidia[0-1]\n"
        (self.folder / "gres.conf").write_text(gres)
        (self.folder / "slurmdbd.conf").write_text(_DBD.format(**values))
        (self.folder / "slurmdbd.conf").chmod(0o600)

    def _accounting(self) -> None:
        data = str(self.folder / "db" / "mysql")
        made = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root"]
        self.run(*made, "--auth-root-authentication-method=normal")
        sock = f"--socket={self.folder}/db.sock"
        self._start(
            *("mariadbd", "mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", sock),
            *("--skip-networking", "--innodb-buffer-pool-size=64M"),
            f"--pid-file={self.folder}/db.pid",
        )
        ping = ("mariadb-admin", "--no-defaults", sock, "ping")
        until(lambda: "alive" in self.run(*ping, check=False), "mariadbd answers")
        self._start("slurmdbd", "slurmdbd", "-D")
        until(self._has_accounts, "slurmdbd answers")

    def _has_accounts(self) -> bool:
        """Before slurmctld starts the cluster must be known, else it ends with 'no TRES'."""
        assert not self.dead(), f"{self.dead()} ended; see {self.folder}/log"
        for made in (
            ("cluster", "lab"),
            ("account", "lab", "cluster=lab"),
            ("user", "root", "account=lab", "cluster=lab"),
        ):
            self.run("sacctmgr", "-i", "add", *made, check=False)
        return "lab" in self.run("sacctmgr", "-n", "list", "cluster", check=False)

    def down(self) -> None:
        """Every job first: what a slurmd started outlives it."""
        if "slurmctld" not in self.daemons:
            self.start_controller()
        self.run("scancel", "--me", check=False)
        for node in ("n1", "n2"):
            self.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)
        ends = {"PENDING", "RUNNING", "COMPLETING", "SUSPENDED"}
        until(lambda: not self.states() & ends, lambda: f"no job is left: {self.jobs()}")
        for name in ("n1", "n2", "slurmctld", "slurmdbd", "mariadbd", "munged"):
            self._end(name)


@contextlib.contextmanager
def cluster(folder: Path, *, accounting: bool = False) -> Iterator[Cluster]:
    """One that is up. Skips the test where Slurm is not installed."""
    skip_where_it_is_missing(accounting=accounting)
    with our_ports() as first:
        one = Cluster(folder, first)
        try:
            one.up(accounting=accounting)
            yield one
        finally:
            if "n2" in one.daemons and "slurmctld" not in one.dead():
                one.down()
            for name in list(one.daemons):
                one._end(name)


@contextlib.contextmanager
def our_ports() -> Iterator[int]:
    """The first of some in a row. They are locked: another worker's cluster that is on its way
    listens at none yet.
    """
    folder = Path(tempfile.gettempdir(), "boxcar-test-ports")
    folder.mkdir(exist_ok=True)
    for first in range(_FIRST_PORT, _LAST_PORT, _PORTS):
        with (folder / str(first)).open("a") as file:
            if _is_locked_now(file.fileno()) and all(map(_is_free, range(first, first + 4))):
                yield first
                return
    raise AssertionError(f"no {_PORTS} free ports in a row above {_FIRST_PORT}")


def _is_locked_now(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def free_port() -> int:
    """One that no cluster takes."""
    return next(port for port in range(_LAST_PORT, _LAST_PORT + 99) if _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) != 0


def path_of_daemons() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
