"""A person with a project, a key and an ssh key, at one stand-in for a provider."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from forked_verb import QUICK_RENTING
from stand_in_providers import environment, stand_in
from tiny_project import Said, TinyProject, make_project

from boxcar.laptop.common.provider_keys import VARIABLES

QUEUES = {"queue_1": ["configs/a.json recon 1"], "queue_2": ["configs/b.json recon 1"]}


@dataclass
class Renter:
    """A person with a project, a key and an ssh key, at one provider."""

    server: Any
    project: TinyProject
    home: Path

    @property
    def env(self) -> dict[str, str]:
        none = dict.fromkeys(VARIABLES, "")
        there = {"HOME": str(self.home), "XDG_STATE_HOME": str(self.home / "state")}
        return none | there | {QUICK_RENTING: "1"} | environment(self.server)

    def type(self, *words: str, typed: str | None = None, **env: str) -> Said:
        flags = () if words[0] == "orphans" else ("-p", self.server.name)
        return self.project.boxcar(*words, *flags, typed=typed, env=self.env | env)

    def up(self, *words: str, **env: str) -> Said:
        return self.type("up", *words, typed="y", **env)

    def records(self) -> list[dict[str, Any]]:
        folder = self.home / "state" / "boxcar" / "rented"
        found = [json.loads(path.read_text()) for path in folder.glob("*.json")]
        return sorted(found, key=lambda one: one["asked_at"])

    def deadlines(self) -> list[str]:
        """The ids of the boxes on which a deadline was laid."""
        found = (self.home / "state" / "boxcar" / "boxes").glob("*/boxcar/tiny/deadline.started")
        return sorted(path.parts[-4] for path in found)

    def orphans(self) -> list[dict[str, Any]]:
        document = self.type("orphans", "--json").document
        return [box for one in document["accounts"] for box in one["ours"] if box["is_orphan"]]

    def mark_ended(self, *boxes: str) -> None:
        """As `down` leaves it when Boxcar's own part is done on these boxes."""
        folder, at = self.project.results, "2026-11-29T01:00:00Z"
        folder.mkdir(parents=True, exist_ok=True)
        teardown = {
            "format": "boxcar.teardown/1", "run": "tiny", "digest": "a" * 64, "verb": "destroy",
            "approved_at": at, "approved_by": "typed", "boxes": dict.fromkeys(boxes, at),
            "off": {}, "gone": {}, "finished_at": at,
        }  # fmt: skip
        (folder / "teardown.json").write_text(json.dumps(teardown))

    def seen_gone(self) -> list[str]:
        found = json.loads((self.project.results / "teardown.json").read_text())
        return sorted(found.get("seen_gone", {}))


@pytest.fixture(scope="session")
def ssh_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("person") / ".ssh"
    folder.mkdir(mode=0o700)
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "id_ed25519")]
    subprocess.run(words, check=True)
    return folder.parent


@pytest.fixture(params=["vastai", "runpod", "lambda"])
def renter(request: pytest.FixtureRequest, tmp_path: Path, ssh_home: Path) -> Iterator[Renter]:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".ssh").symlink_to(ssh_home / ".ssh")
    with stand_in(request.param) as server:
        yield Renter(server, make_project(tmp_path / "project", QUEUES), home)
        assert server.wrong == [], "a request that is not in the contract"
