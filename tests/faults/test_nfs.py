"""Three boxes whose shared tier is a real NFSv4 mount: what a network disk remembers, locks and
loses must not show. Where the kernel has no NFS, client and server, it is skipped with the reason.

On an emulated machine BOXCAR_TEST_SLOWNESS multiplies the time that laptops are waited for.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hosts import NAMES, Hosts, NotPermitted
from nfs_hosts import NfsHosts, nfs_boxes
from proof import assert_nothing_torn, assert_published_once, assert_pulled
from rented import PYTHON, Rented, hurry, rent

T = TypeVar("T")

SLOWNESS = float(os.environ.get("BOXCAR_TEST_SLOWNESS", "1"))
pytestmark = pytest.mark.faults
QUEUES = {
    "q1": ["configs/a.json one 4"],
    "q2": ["configs/b.json one 4"],
    "q3": ["configs/c.json one 4"],
}
CELLS = ["a", "b", "c"]
ONE = {"q1": ["configs/a.json one 4"]}
RACES = 50
# One name after the other, as fast as it goes; prints those that this box was the first to create.
CREATE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from boxcar.shared.disk import atomic as durable
folder = Path(sys.argv[2])
while not (folder / "go").exists():
    list(folder.iterdir())
for number in range(int(sys.argv[3])):
    if durable.create_once(folder / str(number), sys.argv[4].encode()):
        print(number)
"""


@dataclass(frozen=True, kw_only=True)
class OnNfs(Rented):
    """Looked at on the server: what a client shows may be older than what was written."""

    hosts: NfsHosts

    def tier_of(self, box: str) -> Path:
        return self.hosts.exported / "boxcar" / self.run

    def hold(self, name: str, at: int, **config: Any) -> str:
        # On the box's own disk: for up to a minute NFS remembers that a file was not there.
        until = str(Hosts.data_dir / f"go-{name}")
        return self.write_config(name, hold_at=at, until=until, **config)

    def let_go(self, name: str) -> None:
        for box in self.hosts.names:
            self.hosts.seen(box, Hosts.data_dir / f"go-{name}").touch()

    @property
    def pyz(self) -> str:
        """The program that box-a was given, where all boxes have it."""
        [found] = self.hosts.seen("box-a", Hosts.data_dir / "boxcar").glob("onbox-*.pyz")
        shutil.copy(found, self.hosts.exported / found.name)
        return str(Hosts.shared / found.name)

    def report(self, box: str) -> dict[str, Any]:
        """All that `box` says of the run, asked past the laptop, which has nothing of it."""
        asked = {
            "ask": "report",
            "run": self.run,
            "durable_dir": str(Hosts.shared),
            "data_dir": str(Hosts.data_dir),
            "queues": [],
            "everything": True,
            "have": {},
        }
        words = [PYTHON, "-I", "-S", self.pyz, "answer"]
        said = self.hosts.run(box, words, json.dumps(asked).encode()).stdout.decode()
        [line] = [line for line in said.splitlines() if line.startswith("BOXCAR-ANSWER ")]
        found: dict[str, Any] = json.loads(line.removeprefix("BOXCAR-ANSWER "))
        return found

    def is_locked(self, box: str, queue: str) -> bool:
        """Whether `box` sees somebody hold the queue's lock."""
        path = str(Hosts.shared / "boxcar" / self.run / "locks" / f"{queue}.lock")
        code = self.hosts.run(box, ["flock", "-ns", path, "true"], check=False).returncode
        assert code in (0, 1)
        return code == 1


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NfsHosts]:
    yield from _made(tmp_path, monkeypatch, NAMES)


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NfsHosts]:
    """box-a, which works, and box-b, another client; quicker than three."""
    yield from _made(tmp_path, monkeypatch, NAMES[:2])


def _made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: Sequence[str]
) -> Iterator[NfsHosts]:
    try:
        with nfs_boxes(tmp_path / "hosts", names) as made:
            monkeypatch.setenv("PATH", f"{made.bin}{os.pathsep}{os.environ['PATH']}")
            monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
            yield made
    except NotPermitted as reason:
        pytest.skip(f"no NFS of one's own here: {reason}")


def on_nfs(hosts: NfsHosts, root: Path, queues: dict[str, list[str]] = QUEUES) -> OnNfs:
    made = rent(hosts, root, queues)
    return OnNfs(made.root, made.run, hosts=hosts)


def words_of(document: Any) -> dict[str, str]:
    return {queue["queue"]: queue["condition"] for queue in document["queues"]}


def assert_over_and_right(run: OnNfs, cells: list[str]) -> None:
    assert_published_once(run, cells)
    assert_nothing_torn(run)
    left = list(run.tier.rglob(".nfs*"))
    assert not left, "files that somebody removed while another had them open"


def test_a_run_lives_on_a_shared_nfs_from_launch_to_down(hosts, tmp_path):
    run = on_nfs(hosts, tmp_path / "project")
    for cell in CELLS:
        run.hold(cell, at=2)
    run.write_config("d", x=3)  # shipped now; its line comes later
    launched = run.launch("--json").ended(0).document
    assert (launched["started"], launched["problems"]) == (["q1", "q2", "q3"], [])
    # Locks go through the server: each box sees those of all.
    assert [run.is_locked(box, queue) for box in NAMES for queue in QUEUES] == [True] * 9
    wrapper = str(Hosts.shared / "boxcar" / run.run / "releases" / launched["release"])
    second = hosts.run("box-a", ["bash", f"{wrapper}/run_queue.sh", "q2"], check=False)
    assert second.returncode == 75 and b"already running" in second.stderr, second
    assert words_of(run.boxcar("status", "--json").ended(0).document) == dict.fromkeys(
        QUEUES, "running"
    )
    run.append("q2", "configs/d.json two 2")
    run.boxcar("push").ended(0)
    for cell in CELLS:
        run.let_go(cell)
    watched = run.boxcar("watch", "--every", "1s", "--json").ended(0).document
    assert {cell["state"] for cell in watched["cells"]} == {"verified"}
    run.boxcar("pull").ended(0)
    assert run.boxcar("verify", "--json").ended(0).document["is_full"]
    assert_over_and_right(run, [*CELLS, "d"])
    assert_pulled(run, [*CELLS, "d"])
    run.boxcar("down", typed="tiny").ended(75)
    assert not any(run.is_locked("box-a", queue) for queue in QUEUES)


def test_another_client_reports_what_was_written_a_moment_ago(pair, tmp_path):
    cells = [f"a{number}" for number in range(4)]
    run = on_nfs(
        pair, tmp_path / "project", {"q1": [f"configs/{cell}.json one 2" for cell in cells]}
    )
    for cell in cells:
        run.hold(cell, at=1)
    run.launch().ended(0)
    for cell in cells:
        run.report("box-b")  # from here on it remembers what the files and folders were
        run.let_go(cell)
        run.wait_for_event("q1", "cell.verified", cell)
        found = {file["path"]: file for file in run.report("box-b")["files"]}
        journal = base64.b64decode(found["journal/q1.jsonl"]["data"]).decode().splitlines()
        told = [json.loads(line) for line in journal]
        assert "cell.verified" in {e["type"] for e in told if e["data"].get("cell") == cell}
        assert {f"cells/{cell}/manifest.json", f"cells/{cell}/receipt.json"} <= set(found)


def test_of_three_clients_that_create_one_name_at_once_one_wins(hosts, tmp_path):
    run = on_nfs(hosts, tmp_path / "project")
    rows = run.boxcar("audit", "--json").ended(0).document["rows"]
    proven = {row["what"]: row["verdict"] for row in rows}
    assert (proven["tier shared"], proven["claims"]) == ("ok", "ok")
    folder, pyz = Hosts.shared / "race", run.pyz
    hosts.run("box-a", ["mkdir", str(folder)])

    def race(box: str) -> list[str]:
        words = [PYTHON, "-I", "-S", "-c", CREATE, pyz, str(folder), str(RACES), box]
        return hosts.run(box, words).stdout.decode().split()

    with ThreadPoolExecutor(3) as pool:
        racing = [pool.submit(race, box) for box in NAMES]
        time.sleep(2 * SLOWNESS)  # until all three look; who is late only loses
        (hosts.exported / "race" / "go").touch()
        won = dict(zip(NAMES, [future.result() for future in racing], strict=True))
    counted = Counter(name for names in won.values() for name in names)
    assert counted == dict.fromkeys(map(str, range(RACES)), 1)
    for box, names in won.items():
        assert {(hosts.exported / "race" / name).read_text() for name in names} <= {box}
    assert not list((hosts.exported / "race").glob(".*")), "a temporary name is left"


def test_a_server_that_is_away_for_a_while_holds_up_a_run_and_loses_nothing(pair, tmp_path):
    hurry(pair)
    run = on_nfs(pair, tmp_path / "project", ONE)
    run.hold("a", at=2)
    run.launch().ended(0)
    run.wait_for_step("box-a", "a", 2)
    pair.stop_server()
    run.let_go("a")
    run.wait_for_step("box-a", "a", 4)
    seen = run.boxcar("status", "--json").ended(1).document
    assert words_of(seen) == {"q1": "unreachable"}, "silence was taken for death"
    assert not list(run.tier.glob("cells/*/manifest.json"))
    pair.start_server()
    watched = run.boxcar("watch", "--every", "1s", "--json").ended(0).document
    assert [cell["state"] for cell in watched["cells"]] == ["verified"]
    assert_over_and_right(run, ["a"])
    run.boxcar("pull").ended(0)
    assert_pulled(run, ["a"])


def test_a_box_that_the_server_gave_up_is_unreachable_and_goes_on_when_it_is_back(pair, tmp_path):
    hurry(pair)
    run = on_nfs(pair, tmp_path / "project", ONE)
    run.hold("a", at=2)
    run.launch().ended(0)
    run.wait_for_step("box-a", "a", 2)
    pair.cut("box-a")
    # Once its lease is over, whoever asks for the lock makes the server take it away.
    run.wait_for("the end of the lease", lambda: not run.is_locked("box-b", "q1"))
    assert words_of(run.boxcar("status", "--json").ended(1).document) == {"q1": "unreachable"}
    pair.heal("box-a")
    run.let_go("a")
    watched = run.boxcar("watch", "--every", "1s", "--json").ended(0).document
    assert [cell["state"] for cell in watched["cells"]] == ["verified"]
    assert_over_and_right(run, ["a"])
