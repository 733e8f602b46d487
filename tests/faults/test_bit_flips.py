"""A thousand flipped bits, anywhere in what was pulled: every one shuts the gate and is named."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from boxcar.laptop.project.project import open_project
from boxcar.laptop.verbs.down import down

pytestmark = pytest.mark.faults
SEED = int(os.environ.get("BOXCAR_SEED", random.randrange(10**9)))
FLIPS = 1000


@pytest.mark.usefixtures("tell")
def test_every_flipped_bit_is_found(project, monkeypatch):
    run = project({"q1": ["configs/a.json one", "configs/b.json one"]})
    for verb in ("launch", "watch", "pull", "verify"):
        run.boxcar(verb).ended(0)
    opened = open_project(run.root / "job.yaml", "local")
    pulled = [run.results / folder for folder in ("cells", "journal")]
    files = sorted(path for folder in pulled for path in folder.rglob("*") if path.is_file())
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "boxcar.laptop.common.show.json_document", lambda _, found: told.append(found)
    )
    monkeypatch.setattr("boxcar.laptop.common.show.say", lambda text: None)
    dice, missed = random.Random(SEED), []
    for _ in range(FLIPS):
        path = dice.choice(files)
        data = path.read_bytes()
        bit = dice.randrange(len(data) * 8)
        path.write_bytes(flipped(data, bit))
        # Refused it is anyhow, as nobody approves: the question is whether that is the only reason.
        assert down(opened, approve="0" * 64, as_json=True) == 1
        reasons = [reason.what for reason in told.pop()["missing"]]
        if all("approves other results" in reason for reason in reasons):
            missed.append(f"{path.relative_to(run.results)}, bit {bit}")
        path.write_bytes(data)
    print(f"seed {SEED}: {FLIPS} flips in {len(files)} files, {len(missed)} not found {missed[:9]}")
    assert not missed


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
