"""The whole life of a run on three rented boxes, as a person types it, through two bad moments:
one box is cut off and comes back, one reboots in the middle of a cell.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hosts import BOX_ROOT, NAMES, Hosts, NotPermitted, boxes
from proof import assert_nothing_torn, assert_published_once, assert_pulled
from rented import files_with, hurry, rent
from tiny_project import Said

CELLS = ["a", "b", "c", "d"]
CANARY = "canary-4711-do-not-tell"
WHSEC = "whsec_" + base64.b64encode(b"another canary that nobody sees!").decode()
# Takes every event, and writes down what it was.
RECEIVER = """
import http.server, sys
class Take(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        print(body.decode(), flush=True)
        self.send_response(204)
        self.end_headers()
    def log_message(self, *words): pass
http.server.HTTPServer(("10.99.0.1", 8080), Take).serve_forever()
"""


class Life:
    """One run from plan to teardown: what each verb said, in the order in which it was typed."""

    def __init__(self, hosts: Hosts, root: Path) -> None:
        webhook = {"url": "http://10.99.0.1:8080/", "secret": "env:BOXCAR_WEBHOOK_SECRET"}
        queues = {
            "q1": ["configs/a.json one 6", "configs/b.json two"],
            "q2": ["configs/c.json one 4"],
            "q3": ["configs/d.json 'a b'"],
        }
        self.hosts = hosts
        self.project = rent(
            *(hosts, root, queues),
            plain=["box-c"],
            secrets=["API_TOKEN"],
            notify=[{"webhook": webhook}],
        )
        self.said: dict[str, Said] = {}
        self.argv: set[str] = set()
        self.heard: list[str] = []  # by the receiver of webhooks

    def type(self, step: str, *words: str, typed: str | None = None) -> Said:
        secrets = {"API_TOKEN": CANARY, "BOXCAR_WEBHOOK_SECRET": WHSEC}
        self.said[step] = self.project.boxcar(*words, typed=typed, env=secrets)
        return self.said[step]

    def live(self) -> None:
        project, hosts = self.project, self.hosts
        for name, at in (("a", 3), ("c", 2), ("d", 1)):
            project.hold(name, at=at, x=3)
        self.type("plan", "plan", "--json")
        self.type("audit", "audit", "--json")
        with self.command_lines_seen():
            self.project = project.as_programs
            self.type("launch", "launch", "--no-smoke", "--json").ended(0)
            self.project = project
        self.modes = {box: project.credentials(box).stat() for box in NAMES}
        self.type("launch again", "launch", "--no-smoke", "--json")
        self.type("status", "status", "--json")

        hosts.cut("box-b")
        hurry(hosts)
        self.type("cut off", "status", "--json")
        project.let_go("d")
        project.wait_for_event("q3", "queue.done")
        self.type("drain one that is cut off", "drain", "--queue", "q2")
        hosts.heal("box-b")
        self.type("healed", "status", "--json")

        project.wait_for_step("box-a", "a", 3)
        hosts.reboot("box-a")
        self.type("rebooted", "status", "--json")
        self.type("launch after reboot", "launch", "--no-smoke", "--json", "--box", "box-a")
        project.let_go("a")
        project.let_go("c")
        self.type("watch", "watch", "--every", "1s", "--json")
        self.history = (project.out("box-a", "a") / "history.txt").read_text().splitlines()
        self.type("cron", "watch", "--once-if-changed")
        self.type("cron again", "watch", "--once-if-changed")
        self.type("pull", "pull", "--json")
        self.type("verify", "verify", "--json")
        self.told_secrets = self.files_with_secrets()
        self.type("down mistyped", "down", "--json", typed="tiny-2")
        self.had_credentials = [project.credentials(box).exists() for box in NAMES]
        self.type("down", "down", "--json", typed="tiny")
        self.has_credentials = [project.credentials(box).exists() for box in NAMES]
        self.type("down again", "down", "--json")
        self.type("status open", "status", "--json")
        self.type("runs open", "runs")
        seen = [word for name in NAMES for word in ("--seen-off", name)]
        self.type("seen off", "down", *seen)
        self.type("status after", "status", "--json")

    def files_with_secrets(self) -> list[str]:
        folders = [self.project.root, *(self.hosts.seen(box, BOX_ROOT) for box in NAMES)]
        return [
            path
            for folder in folders
            for secret in (CANARY, WHSEC, WHSEC.removeprefix("whsec_"))
            for path in files_with(folder, secret)
        ]

    @contextlib.contextmanager
    def command_lines_seen(self) -> Iterator[None]:
        """All that `ps` would show of this machine and of every box meanwhile."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(0.05):
                for path in Path("/proc").glob("[0-9]*/cmdline"):
                    with contextlib.suppress(OSError):
                        self.argv.add(path.read_bytes().decode(errors="replace"))

        watching = threading.Thread(target=look)
        watching.start()
        try:
            yield
        finally:
            over.set()
            watching.join()


@pytest.fixture(scope="module")
def life(
    tmp_path_factory: pytest.TempPathFactory, announce: Callable[[str], None]
) -> Iterator[Life]:
    announce("a run on three rented boxes, through a cut and a reboot; a minute or more")
    folder = tmp_path_factory.mktemp("life")
    try:
        with boxes(folder / "hosts") as hosts, pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", f"{hosts.bin}{os.pathsep}{os.environ['PATH']}")
            receiver = [*hosts.laptop(), sys.executable, "-c", RECEIVER]
            with subprocess.Popen(receiver, stdout=subprocess.PIPE, text=True) as process:
                lived = Life(hosts, folder / "project")
                try:
                    lived.live()
                finally:
                    process.kill()
                lived.heard = process.communicate()[0].splitlines()
            yield lived
    except NotPermitted as reason:
        pytest.skip(f"no boxes of one's own here: {reason}")


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("plan", 0),
        ("audit", 0),
        ("launch", 0),
        ("launch again", 0),
        ("status", 0),
        ("cut off", 1),
        ("drain one that is cut off", 1),
        ("healed", 0),
        ("rebooted", 1),
        ("launch after reboot", 0),
        ("watch", 0),
        ("cron", 0),
        ("cron again", 0),
        ("pull", 0),
        ("verify", 0),
        ("down mistyped", 1),
        ("down", 75),
        ("down again", 75),
        ("status open", 1),
        ("runs open", 0),
        ("seen off", 0),
        ("status after", 0),
    ],
)
def test_each_verb_ends_with_its_exit_code(life: Life, step: str, code: int) -> None:
    life.said[step].ended(code)


def test_json_is_one_document_and_nothing_else_is_on_stdout(life: Life) -> None:
    spoken = [said for said in life.said.values() if "--json" in said.words]
    verbs = {said.words.split()[1] for said in spoken}
    assert verbs == {"plan", "audit", "launch", "status", "watch", "pull", "verify", "down"}
    assert [said.document["run"] for said in spoken] == ["tiny"] * len(spoken)


def test_one_launch_starts_a_cell_on_each_box_and_another_leaves_them_alone(life: Life) -> None:
    first, again = (life.said[step].document for step in ("launch", "launch again"))
    assert (first["started"], first["problems"]) == (["q1", "q2", "q3"], [])
    assert (again["started"], again["release"]) == ([], first["release"])
    assert life.said["launch again"].err.count("its agent is already running") == 3
    running = {cell["cell"]: cell["box"] for cell in _cells(life, "status", "running")}
    assert running == {"a": "box-a", "c": "box-b", "d": "box-c"}
    assert life.said["launch"].err.count("is new: ") == 1, "a shared tier gets a release once"


def test_every_host_key_is_told_on_first_use_and_only_then(life: Life) -> None:
    told = "".join(said.err for said in life.said.values())
    for box in NAMES:
        assert told.count(f"its key is {life.hosts.fingerprint(box)}") == 1


def test_a_box_that_is_cut_off_is_unreachable_and_never_dead(life: Life) -> None:
    cut, healed = _conditions(life, "cut off"), _conditions(life, "healed")
    assert cut == {"q1": "running", "q2": "unreachable", "q3": "running"}
    assert "box-b does not answer" in life.said["cut off"].document["problems"][0]
    assert "dead" not in life.said["cut off"].document["queues"][1]["sentence"]
    assert healed == {"q1": "running", "q2": "running", "q3": "done"}
    assert "box-b cannot be reached" in life.said["drain one that is cut off"].err
    drained = [event for event in life.project.events("q2") if "drain" in json.dumps(event)]
    assert not drained, "what was asked of a box that is cut off came later"


def test_a_cell_goes_on_from_its_checkpoint_after_a_reboot(life: Life) -> None:
    assert _conditions(life, "rebooted")["q1"] == "agent dead"
    assert life.said["rebooted"].document["next"]["command"] == "boxcar launch"
    assert life.said["launch after reboot"].document["started"] == ["q1"]
    assert life.history == [
        *("start 0", "step 1", "step 2", "step 3"),
        *("start 3", "step 4", "step 5", "step 6"),
    ]
    assert_published_once(life.project, CELLS)
    assert_nothing_torn(life.project)


def test_webhooks_of_all_boxes_arrive_though_one_was_cut_off(life: Life) -> None:
    heard = [json.loads(line) for line in life.heard]
    verified = [told["data"]["cell"] for told in heard if told["type"] == "cell.verified"]
    assert sorted(verified) == CELLS


def test_cron_has_a_word_only_where_something_changed(life: Life) -> None:
    assert "q1: done" in life.said["cron"].out
    assert (life.said["cron again"].out + life.said["cron again"].err).strip() == ""


def test_all_is_pulled_and_proven(life: Life) -> None:
    assert [cell["state"] for cell in life.said["pull"].document["cells"]] == ["pulled"] * 4
    assert_pulled(life.project, CELLS)
    assert life.said["verify"].document["is_full"]


def test_a_secret_is_nowhere_but_in_the_credentials_of_each_box(life: Life) -> None:
    places = {life.project.credentials(box) for box in NAMES}
    assert {Path(path) for path in life.told_secrets} == places
    assert {oct(stat.S_IMODE(mode.st_mode)) for mode in life.modes.values()} == {"0o600"}
    said = "".join(said.out + said.err for said in life.said.values())
    shown = "".join(life.argv)
    assert "boxcar" in shown and "answer" in shown, "no command line of a launch was seen"
    for secret in (CANARY, WHSEC, WHSEC.removeprefix("whsec_")):
        assert secret not in said and secret not in shown


def test_down_takes_the_secrets_and_leaves_the_durable_tier(life: Life) -> None:
    assert "found 'tiny-2'" in life.said["down mistyped"].err
    assert life.had_credentials == [True] * 3
    assert life.has_credentials == [False] * 3
    assert life.project.tier.joinpath("cells/a/manifest.json").exists()
    assert life.said["down"].document["teardown"]["approved_by"] == "typed"
    assert life.said["down again"].document == life.said["down"].document
    assert life.said["status after"].document["next"]["command"] is None
    seen = "--seen-off box-a --seen-off box-b --seen-off box-c"
    assert "--job " in life.said["runs open"].err, "from wherever it is typed"
    for name in ("down", "down again", "runs open"):
        assert seen in life.said[name].err, "who stops the meter is to be said"
    assert life.said["status open"].document["next"]["command"].endswith(f"down {seen}")
    assert "yours is open" in life.said["runs open"].out
    assert "yours is open" not in life.said["seen off"].err


def _cells(life: Life, step: str, state: str) -> list[dict[str, Any]]:
    return [cell for cell in life.said[step].document["cells"] if cell["state"] == state]


def _conditions(life: Life, step: str) -> dict[str, str]:
    return {queue["queue"]: queue["condition"] for queue in life.said[step].document["queues"]}
