"""kill -9 at random times of the demo itself, its agents and its launchers: typed again, it ends
with every cell of the example verified exactly once.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from living import kill, living
from proof import assert_as_manifest
from tiny_project import BOXCAR, environment
from waiting import LIMIT_S

pytest.importorskip("torch")
pytestmark = pytest.mark.faults
SEED = int(os.environ.get("BOXCAR_SEED", random.randrange(10**9)))
RUN = "digits-ablation"
STORM_S = 75
VICTIMS = {
    "demo": ["boxcar demo"],
    "agent": [".pyz agent "],
    "launcher": ["torch.distributed.run --standalone"],
    "wrapper": ["begin.py attempt "],
}


@pytest.mark.usefixtures("tell")
def test_the_same_command_ends_with_every_cell_verified_once(tmp_path):
    dice, hits = random.Random(SEED), Counter[str]()
    until = time.monotonic() + STORM_S
    demo = typed(tmp_path)
    while time.monotonic() < until:
        time.sleep(dice.uniform(1, 6))
        if demo.poll() is not None:
            demo.communicate()
            demo = typed(tmp_path)
        kind = dice.choice(sorted(VICTIMS))
        victims = [one for one in living(tmp_path) if any(w in one.words for w in VICTIMS[kind])]
        if victims and kill(dice.choice(victims)):
            hits[kind] += 1
    demo.kill()
    demo.communicate()
    print(f"seed {SEED}: {sum(hits.values())} kills {dict(hits)}")
    last = typed(tmp_path)
    out, err = last.communicate(f"{RUN}\n", timeout=LIMIT_S)
    assert last.returncode == 0, out + err
    results = tmp_path / "boxcar-demo" / "results" / RUN
    assert json.loads((results / "teardown.json").read_bytes())["finished_at"]
    cells = {path.name for path in (results / "cells").iterdir()}
    journals = (results / "journal").glob("*.jsonl")
    events = [json.loads(line) for path in journals for line in path.read_text().splitlines()]
    verified = Counter(e["data"]["cell"] for e in events if e["type"] == "cell.verified")
    assert len(cells) >= 8 and verified == dict.fromkeys(cells, 1)
    for cell in cells:
        assert_as_manifest(results / "cells" / cell)
    assert not living(tmp_path)


def typed(folder: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [BOXCAR, "demo"],
        cwd=folder,
        env=environment(),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
    )
