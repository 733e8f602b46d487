"""A tiny project whose boxes are rented: a profile of its own over `ssh`, and the verbs as typed.

What lies on the boxes is read past ssh and the network, through `Hosts.seen`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forked_box
import quick_python
import yaml
from hosts import BOX_ROOT, Hosts
from tiny_project import Said, TinyProject, make_project

# Without torch, whose import in every audit costs seconds; a tiny cell needs the standard library.
PYTHON = str(Path(sys.base_prefix, "bin", "python3"))
_BIN = BOX_ROOT / "etc" / "bin"
# A box's PATH without some tools; sshd gives it to every login.
_WITHOUT = 'mkdir -p "$0"; ln -sf /usr/bin/* /usr/sbin/* "$0"; cd "$0"; rm -f "$@"'
QUICK = BOX_ROOT / "etc" / "quick"


@dataclass(frozen=True, kw_only=True)
class Rented(TinyProject):
    """`has_tier`: the boxes share one; else each has a durable folder of its own."""

    hosts: Hosts
    has_tier: bool = True
    is_quick: bool = False  # of local boxes; see `rent`

    def launch(self, *words: str, **more: Any) -> Any:
        """Without the smoke, which is tried elsewhere."""
        return self.boxcar("launch", "--no-smoke", *words, **more)

    def watch(self, *words: str) -> Said:
        """`watch`, once the agents have ended: until then each look asks every box anew."""
        self.wait_for_agents()
        return self.boxcar("watch", "--every", "1s", *words).ended(0)

    @property
    def tier(self) -> Path:
        """The shared tier, through the last box: tests reboot the others."""
        return self.tier_of(self.hosts.names[-1])

    def tier_of(self, box: str) -> Path:
        place = Hosts.shared if self.has_tier else Hosts.data_dir / "durable"
        return self.hosts.seen(box, place / "boxcar" / self.run)

    @property
    def local(self) -> Path:
        return self.tier

    def box(self, box: str) -> Path:
        return self.hosts.seen(box, Hosts.data_dir / "boxcar" / self.run)

    def credentials(self, box: str) -> Path:
        return self.hosts.seen(box, self.hosts.home(box) / f".boxcar/credentials-{self.run}.json")

    def hold(self, name: str, at: int, **config: Any) -> str:
        # By its place on the boxes, and written there: the laptop's folders are not seen there.
        until = str(Hosts.shared / f"go-{self.run}-{name}")
        return self.write_config(name, hold_at=at, until=until, **config)

    def _go(self, name: str) -> Path:
        return self.hosts.seen(self.hosts.names[-1], Hosts.shared / f"go-{self.run}-{name}")

    def told(self) -> str:
        logs = [
            f"--- {path}\n{path.read_bytes()[-1500:].decode(errors='replace')}"
            for box in self.hosts.names
            for root in (self.box(box), self.tier_of(box))
            for pattern in ("agent-*.log", "cells/*/*.log", "journal/*.jsonl")
            for path in sorted(root.glob(pattern))
        ]
        return "\n".join(logs)


def rent(
    hosts: Hosts,
    root: Path,
    queues: Mapping[str, Sequence[str]],
    *,
    has_tier: bool = True,
    plain: Sequence[str] = (),
    profile: Mapping[str, Any] | None = None,
    **job: Any,
) -> Rented:
    """A project in `root` with these queues, the first on box-a; `job` changes its JOB.

    The agent's file is run by quick_python, and its answers and load checks by forked_box, so that
    their starts cost less; but for the boxes of `plain`, which have an interpreter and no more.
    """
    made = make_project(root, queues, **job)
    (root / "profiles").mkdir(exist_ok=True)
    python = quick(hosts, plain)
    document = _profile("nas" if has_tier else None, python) | dict(profile or {})
    (root / "profiles" / "rented.yaml").write_text(yaml.safe_dump(document))
    (root / "invoke.yaml").write_text("boxcar: {profile: rented}\n")
    return Rented(root, made.run, hosts=hosts, has_tier=has_tier)


def quick(hosts: Hosts, plain: Sequence[str] = ()) -> str:
    """The interpreter of the boxes by which the agent's file and the load check start quickly,
    which is Python itself on those of `plain`."""
    for box in hosts.names:
        there = hosts.seen(box, QUICK)
        quick_python.install(there, QUICK, PYTHON, forked_box.DOOR)
        if box in plain:
            (there / "python").write_text(f'#!/bin/sh\nexec {PYTHON} "$@"\n')
    hosts.open_doors()
    return str(QUICK / "python")


def hurry(hosts: Hosts) -> None:
    """From now on the laptop's ssh waits seconds for a box that is cut off, see host_scripts.SHIM;
    a person's wait is half a minute."""
    (hosts.bin / "hurry").touch()


def files_with(folder: Path, secret: str) -> list[str]:
    """Every file below that holds the text; a file that vanishes meanwhile holds nothing."""
    found = []
    for path in folder.rglob("*"):
        try:
            if path.is_file() and not path.is_symlink() and secret.encode() in path.read_bytes():
                found.append(str(path))
        except OSError:
            continue
    return found


def _profile(durable: str | None, python: str) -> dict[str, Any]:
    disk = {"path": str(Hosts.data_dir), "stop": "keep", "destroy": "lose"}
    nas = {"path": str(Hosts.shared), "scope": "cluster", "stop": "keep", "destroy": "keep"}
    tiers = {"disk": disk, "nas": nas}
    return {
        "name": "rented",
        "extends": "ssh",
        "env": {"agent_python": python, "training_python": python},
        "storage": {"data": "disk", "durable": durable, "tiers": tiers},
    }


def without(hosts: Hosts, box: str, *tools: str) -> None:
    hosts.run(box, ["sh", "-c", _WITHOUT, str(_BIN), *tools])
    hosts.start_sshd(box, SetEnv=f"PATH={_BIN}")


def on_the_wire_bytes(hosts: Hosts, box: str) -> int:
    """What the box's network card has received and sent."""
    lines = hosts.run(box, ["cat", "/proc/net/dev"]).stdout.decode().splitlines()
    fields = next(line for line in lines if "eth0:" in line).split()
    return int(fields[1]) + int(fields[9])
