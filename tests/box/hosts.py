"""Three "rented boxes" on this machine: namespaces with a real sshd each, and a laptop's network.

One process (the world) holds a network, a mount and a pid namespace of its own; the network
namespaces, disks and processes of all boxes lie inside it. It ends when its stdin closes, so a
pytest that is killed leaves nothing behind. Nothing is made in this machine's own network.

Inside a box its folders lie below /tmp/box, in a /tmp of its own (boxes must not share the sockets
of tmux). The laptop, which is the test's process, sees none of them: look with `seen`.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import forked_box
import host_scripts as scripts
import pytest
from host_scripts import BOOT, DISKS, KEYGEN, SSHD, UNSHARE, WORLD
from waiting import until

NAMES = ("box-a", "box-b", "box-c")
LAPTOP = "laptop"
TOOLS = ("unshare", "nsenter", "ip", "mount", "sshd", "ssh", "ssh-keygen")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BOX_ROOT = Path("/tmp/box")


class NotPermitted(Exception):
    """This machine cannot have such boxes; the text says why."""


class Hosts:
    """The boxes and the wires between them. `folder` must be new; it is the laptop's."""

    # As the boxes see them: one shared by all, one private disk of each, at the same path.
    shared = BOX_ROOT / "shared"
    data_dir = BOX_ROOT / "data"

    def __init__(self, folder: Path, names: Sequence[str] = NAMES) -> None:
        check_permitted()
        self.names = list(names)
        self.folder = folder
        self.bin = folder / "bin"
        self.key = folder / "key"
        self.config = folder / "ssh_config"
        self._disks = folder / "disks"
        for made in (self.bin, self._disks):
            made.mkdir(parents=True)
        self._inits: dict[str, subprocess.Popen[bytes]] = {}
        self._homes = dict.fromkeys(self.names, BOX_ROOT / "home")
        self._shells = dict.fromkeys(self.names, "/bin/bash")
        self._hostnames = {name: name for name in self.names}
        self._environments: dict[str, dict[str, str]] = {name: {} for name in self.names}
        self._doors: dict[str, object] | None = None
        self._world = _start([*UNSHARE, "sh", "-c", WORLD, "sh", str(self._disks)])
        try:
            self._wire()
            self._install_disks()
            self._install_client()
            with ThreadPoolExecutor(len(self.names)) as pool:
                list(pool.map(self.boot, self.names))
        except BaseException:
            self.close()
            raise

    # What a test does to boxes.

    def set_up(
        self,
        name: str,
        *,
        shell: str | None = None,
        home: str | None = None,
        hostname: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Boots anew with another login shell ("banner": bash that greets first), home, host name,
        or environment of the first process."""
        if shell == "banner":
            self._write(name, "tmp/box/etc/banner-shell", scripts.BANNER_SHELL, mode=0o755)
            shell = str(BOX_ROOT / "etc/banner-shell")
        self._shells[name] = shell or self._shells[name]
        self._homes[name] = BOX_ROOT / home if home else self._homes[name]
        self._hostnames[name] = hostname or self._hostnames[name]
        self._environments[name] = dict(environment or self._environments[name])
        self.reboot(name)

    def run(
        self, name: str, words: Sequence[str], data: bytes = b"", *, check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command in the box, past ssh and the network."""
        env = {"HOME": str(self._homes[name]), "PATH": SYSTEM_PATH, "LANG": "C.UTF-8"}
        done = subprocess.run(
            [*self._enter(name), *words], input=data, capture_output=True, env=env, check=False
        )
        if check and done.returncode:
            raise AssertionError(f"{name}: {words}: {done.returncode}: {done.stderr.decode()}")
        return done

    def seen(self, name: str, path: Path | str) -> Path:
        """Where the test's process sees `path` of a box that is up (reads and writes go there)."""
        return Path(f"/proc/{self.init_pid(name)}/root") / str(path).lstrip("/")

    def home(self, name: str) -> Path:
        """The login folder, as the box sees it."""
        return self._homes[name]

    def init_pid(self, name: str) -> int:
        """The box's first process, as this machine counts. Killing it is a power cut."""
        # nsenter -> unshare -> init
        return _only_child(_only_child(self._inits[name].pid))

    def limit(self, name: str, options: str) -> None:
        """Remount the data disk of a box, or "shared", such as "size=1m" or "nr_inodes=20"."""
        disk = self._disks / (name if name == "shared" else f"{name}/tmp/box/data")
        self._in_world("mount", "-o", f"remount,{options}", str(disk))

    def open_doors(self) -> None:
        """From now on what the agent's file answers on a box is forked there, see forked_box."""
        if self._doors is None:
            self._doors = {name: forked_box.open_door(self.init_pid(name)) for name in self.names}

    # Power.

    def boot(self, name: str) -> None:
        home, shell = self._homes[name], self._shells[name]
        self._write(name, "passwd", scripts.passwd(home, shell))
        self._write(name, "shadow", "root:*:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n")
        self._write(name, "boot_id", f"{uuid.uuid4()}\n")
        self._backing(name, "tmp" + str(home).removeprefix("/tmp")).mkdir(exist_ok=True)
        words = [
            *("nsenter", f"--mount=/proc/{self._world.pid}/ns/mnt"),
            *(f"--pid=/proc/{self._world.pid}/ns/pid_for_children", f"--net={self._net(name)}"),
            *("unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child"),
            *("--mount-proc", "--propagation", "private", "sh", "-c", BOOT, "sh"),
            # The last is seen in the box too where it lies below /tmp, which is the box's own.
            *(self._hostnames[name], str(self._disks / name), sys.prefix),
        ]
        self._inits[name] = _start(words, self._environments[name])
        if self._doors is not None:
            self._doors[name] = forked_box.open_door(self.init_pid(name))
        self._run_sshd(name)

    def halt(self, name: str) -> None:
        """Every process of the box ends at once; its disks stay."""
        # None of it may be there any more: a test may have killed the first process by itself.
        with contextlib.suppress(OSError, ValueError):
            os.kill(self.init_pid(name), signal.SIGKILL)
        _end(self._inits.pop(name))

    def reboot(self, name: str) -> None:
        self.halt(name)
        self.boot(name)

    def destroy(self, name: str) -> None:
        """The box and its disks are gone, and nothing answers at its address."""
        self.cut(name)
        self.halt(name)
        self._in_world("umount", "-l", str(self._disks / name / "tmp/box/data"))
        self._in_world("umount", "-l", str(self._disks / name / "tmp/box/shared"))
        self._in_world("rm", "-rf", "--one-file-system", str(self._disks / name))

    # sshd.

    def start_sshd(self, name: str, **options: str | int) -> None:
        """(Re)start sshd, such as `start_sshd("box-a", MaxStartups=1)`. Sessions go on."""
        self.stop_sshd(name)
        self._run_sshd(name, **options)

    def stop_sshd(self, name: str) -> None:
        """No new connections are taken. Those that are there go on."""
        self.run(name, ["sh", "-c", scripts.STOP_SSHD])

    def new_host_key(self, name: str) -> None:
        """What a box that was rented anew at the same address looks like."""
        self._make_host_key(name)
        self.start_sshd(name)

    def fingerprint(self, name: str) -> str:
        """SHA256:... of the host key that the box offers now."""
        words = [_tool("ssh-keygen"), "-lf", str(BOX_ROOT / "etc/host_key.pub")]
        return self.run(name, words).stdout.split()[1].decode()

    # The wires.

    def cut(self, name: str) -> None:
        """Pull the cable: packets are lost and nobody is told."""
        (self.bin / f"cut-{name}").touch()
        self._in_world("ip", "link", "set", f"v-{name}", "down")

    def heal(self, name: str) -> None:
        """Undo cut, reject, lose, slow and netem."""
        self._in_world("ip", "link", "set", f"v-{name}", "up")
        self._in_world("sh", "-c", scripts.HEAL, "sh", name, scripts.address(_number(name)))
        (self.bin / f"cut-{name}").unlink(missing_ok=True)

    def reject(self, name: str) -> None:
        """Connections to sshd, old ones and new ones, are answered by a TCP reset."""
        reset = ["-p", "tcp", "--dport", "22", "-j", "REJECT", "--reject-with", "tcp-reset"]
        self._filter(name, *reset)

    def lose(self, name: str, share: float) -> None:
        """Lose this share of all packets, 0 to 1, to the box and from it to the laptop."""
        dice = ["-m", "statistic", "--mode", "random", "--probability", str(share), "-j", "DROP"]
        self._filter(name, *dice)
        self._filter(LAPTOP, "-s", scripts.address(_number(name)), *dice)

    def slow(self, name: str, rate: str) -> None:
        """Both directions at `rate`, in the words of tc: "1mbit"."""
        self._shape(name, "tbf", "rate", rate, "burst", "16kb", "latency", "400ms")

    def netem(self, name: str, *words: str) -> None:
        """Both directions through netem, in its words: "delay", "100ms"."""
        self._shape(name, "netem", *words)

    def laptop(self) -> list[str]:
        """Words to put before a command that shall run in the laptop's network."""
        return ["nsenter", f"--net={self._net(LAPTOP)}"]

    def close(self) -> None:
        """End everything, also what still runs in the laptop's network (ssh masters)."""
        for pid in _pids_in(Path(self._net(LAPTOP))):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in (self._world, *self._inits.values()):
            _end(process)

    def _filter(self, name: str, *rule: str) -> None:
        _skip_without("iptables")
        self._in_net(name, "iptables", "-A", "INPUT", *rule)

    def _shape(self, name: str, *words: str) -> None:
        _skip_without("tc")
        try:
            self._in_world("tc", "qdisc", "replace", "dev", f"v-{name}", "root", *words)
            self._in_net(name, "tc", "qdisc", "replace", "dev", "eth0", "root", *words)
        except NotPermitted as reason:
            pytest.skip(f"this kernel cannot: {reason}")

    # How it is made.

    def _run_sshd(self, name: str, **options: str | int) -> None:
        etc = BOX_ROOT / "etc"
        text = "".join(f"{key} {value}\n" for key, value in options.items())
        text += SSHD.format(address=scripts.address(_number(name)), etc=etc)
        self._write(name, "tmp/box/etc/sshd_config", text)
        log = etc / "sshd.log"
        self.run(name, [_tool("sshd"), "-f", str(etc / "sshd_config"), "-E", str(log)])
        # Written when it listens.
        until(self.seen(name, "/run/sshd.pid").exists, f"{name}: sshd listens")

    def _wire(self) -> None:
        lines = ["link set lo up", "link add br0 type bridge", "link set br0 up"]
        for number, name in self._numbered():
            peer = f"peer name eth0 address {scripts.hardware_address(number)} netns {name}"
            lines += [f"netns add {name}", f"link add v-{name} type veth {peer}"]
            lines += [f"link set v-{name} master br0 up"]
        self._in_world("ip", "-batch", "-", data="\n".join(lines))
        for number, name in self._numbered():
            lines = [f"addr add {scripts.address(number)}/24 dev eth0", "link set eth0 up"]
            # Without it, each side waits 40 ms for the other more than once per login.
            route = f"route change 10.99.0.0/24 dev eth0 src {scripts.address(number)} quickack 1"
            lines += ["link set lo up", route]
            if name == LAPTOP:
                # Known for ever: a box whose cable is pulled is silent, and not "no route to host".
                lines += [scripts.neighbour(box) for box in map(_number, self.names)]
            self._in_world("ip", "-n", name, "-batch", "-", data="\n".join(lines))

    def _numbered(self) -> list[tuple[int, str]]:
        return [(1, LAPTOP), *((_number(name), name) for name in self.names)]

    def _install_disks(self) -> None:
        self._in_world("sh", "-c", DISKS, "sh", str(self._disks), *self.names)
        subprocess.run([*KEYGEN, str(self.key)], check=True)
        public = self.key.with_suffix(".pub").read_text()
        for name in self.names:
            self._write(name, "tmp/box/etc/authorized_keys", public)
            self._make_host_key(name)

    def _install_client(self) -> None:
        aliases = (
            scripts.ALIAS.format(name=name, address=scripts.address(_number(name)), key=self.key)
            for name in self.names
        )
        self.config.write_text("".join(aliases))
        words = [*self.laptop(), _tool("ssh"), "-F", str(self.config)]
        shim = self.bin / "ssh"
        folder, names = shlex.quote(str(self.bin)), " | ".join(self.names)
        text = scripts.SHIM.format(folder=folder, names=names, ssh=shlex.join(words))
        shim.write_text(text)
        shim.chmod(0o755)

    def _make_host_key(self, name: str) -> None:
        key = self._backing(name, "tmp/box/etc/host_key")
        key.unlink(missing_ok=True)
        subprocess.run([*KEYGEN, str(key)], check=True)

    def _backing(self, name: str, path: str) -> Path:
        """A file of the box's disks, seen without the box."""
        return Path(f"/proc/{self._world.pid}/root{self._disks}") / name / path

    def _write(self, name: str, path: str, text: str, mode: int = 0o644) -> None:
        file = self._backing(name, path)
        file.write_text(text)
        file.chmod(mode)

    def _net(self, name: str) -> str:
        return f"/proc/{self._world.pid}/root/run/netns/{name}"

    def _in_world(self, *words: str, data: str = "") -> None:
        enter = ["nsenter", f"--target={self._world.pid}", "--mount", "--net"]
        done = subprocess.run(
            [*enter, *words], input=data, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise NotPermitted(f"{' '.join(words)}: {done.stderr.strip()}")

    def _in_net(self, name: str, *words: str) -> None:
        self._in_world("ip", "netns", "exec", name, *words)

    def _enter(self, name: str) -> list[str]:
        return ["nsenter", f"--target={self.init_pid(name)}", "--all", "--wd=/"]


@contextlib.contextmanager
def boxes(folder: Path, names: Sequence[str] = NAMES) -> Iterator[Hosts]:
    """Raises NotPermitted with the reason where this machine cannot have them."""
    hosts = Hosts(folder, names)
    try:
        yield hosts
    finally:
        hosts.close()


def check_permitted() -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        raise NotPermitted("boxes in namespaces need Linux, and a real root for sshd")
    missing = [tool for tool in TOOLS if not _tool(tool, or_none=True)]
    if missing:
        raise NotPermitted(f"not installed: {', '.join(missing)}")


def _tool(name: str, *, or_none: bool = False) -> str:
    # Not this process's PATH: its first folder may already hold the shim.
    found = shutil.which(name, path=SYSTEM_PATH)
    if not found and not or_none:
        raise NotPermitted(f"not installed: {name}")
    return found or ""


def _skip_without(tool: str) -> None:
    if not _tool(tool, or_none=True):
        pytest.skip(f"no {tool} on this machine")


def _number(name: str) -> int:
    return ord(name[-1]) - ord("a") + 2


def _start(
    words: list[str], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start what says "ready" when it is."""
    pipe = subprocess.PIPE
    env = {**os.environ, **(environment or {})}
    process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=env)
    assert process.stdout and process.stderr
    if process.stdout.readline() != b"ready\n":
        why = process.stderr.read().decode().strip()
        _end(process)
        raise NotPermitted(f"{words[0]}: {why}")
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def _only_child(pid: int) -> int:
    [child] = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def _pids_in(net: Path) -> list[int]:
    """The processes whose network namespace this is."""
    wanted = net.stat()
    found = []
    for link in Path("/proc").glob("[0-9]*/ns/net"):
        with contextlib.suppress(OSError):
            if os.path.samestat(link.stat(), wanted):
                found.append(int(link.parts[2]))
    return found
