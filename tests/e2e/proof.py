"""What must hold of a run that is over, whatever was killed meanwhile. A second opinion on it all:
nothing here is Boxcar's own code.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from living import living
from tiny_project import TinyProject, sha256


def assert_published_once(project: TinyProject, cells: Iterable[str]) -> None:
    """Each cell verified exactly once, with one manifest, and every byte as that manifest says."""
    verified = Counter(
        event["data"]["cell"] for event in project.all_events() if event["type"] == "cell.verified"
    )
    assert verified == dict.fromkeys(cells, 1), project.told()
    manifests = sorted(path.parent.name for path in project.tier.rglob("manifest.json"))
    assert manifests == sorted(cells), "a manifest too many or too few, or one that gave way"
    for cell in cells:
        assert_as_manifest(project.tier / "cells" / cell)


def assert_as_manifest(folder: Path) -> dict[str, Any]:
    """Every file that the manifest of `folder` names is there with its size and hash."""
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())
    assert found["files"]
    for file in found["files"]:
        path = folder / file["path"]
        assert (path.stat().st_size, sha256(path)) == (file["size_bytes"], file["sha256"]), path
    return found


def assert_pulled(project: TinyProject, cells: Iterable[str]) -> None:
    """The laptop has each cell, byte for byte, from the manifest that the tier has."""
    for cell in cells:
        assert_as_manifest(project.results / "cells" / cell)
        here, there = (
            root / "cells" / cell / "manifest.json" for root in (project.results, project.tier)
        )
        if project.tier.exists():
            assert here.read_bytes() == there.read_bytes()


def assert_nothing_torn(project: TinyProject) -> None:
    """Every document reads, and the journals count without a gap."""
    for path in project.local.rglob("*.json"):
        if "/code/" not in str(path) and not path.name.startswith("."):
            json.loads(path.read_bytes())
    for path in (project.tier / "journal").glob("*.jsonl"):
        assert path.read_bytes().endswith(b"\n")
        events = project.events(path.stem)
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert len({event["id"] for event in events}) == len(events)
    assert not list((project.tier / "journal").glob("*.torn*"))


def assert_nothing_runs(project: TinyProject) -> None:
    """No agent, wrapper, launcher or rsync of the project, once the last of them had time to go."""
    project.wait_for("the end of every process", lambda: not living(project.root))
