"""Questions and answers over real ssh, with a small agent that stands for the real one."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from hosts import Hosts
from waiting import LIMIT_S, until

from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts import connection
from boxcar.laptop.hosts.ask_over_ssh import Hand, agent_program
from boxcar.laptop.hosts.connection import Ssh
from boxcar.shared.errors import InputError, NoRoomError, TemporaryError
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import Question, RunOnBox

AGENT = """
import json, os, sys
request = json.loads(sys.stdin.readline())
if request["ask"] == "echo":
    answer = {"request": request, "pid": os.getpid()}
elif request["ask"] == "fail":
    answer = {"error": {"kind": request["kind"], "text": "no such queue"}}
else:
    sys.exit("the agent broke")
print("a line of somebody's")
print("BOXCAR-ANSWER " + json.dumps(answer))
"""
# The same, which lives on as the real one does.
LIVES_ON = """
import json, os, sys
print("a line of somebody's")
for line in sys.stdin:
    request = json.loads(line)
    if request["value"] == "die":
        sys.exit(7)
    print("BOXCAR-ANSWER " + json.dumps({"request": request, "pid": os.getpid()}), flush=True)
"""
NAME = "onbox-0123.pyz"


@dataclass(frozen=True)
class Known:
    hostname: str | None = None
    env: str | None = None


@dataclass(frozen=True)
class Connection:
    identity: Known = Known()


@dataclass(frozen=True)
class Env:
    agent_python: str = "auto"


@dataclass(frozen=True)
class Platform:
    connection: Connection = field(default_factory=Connection)
    env: Env = field(default_factory=Env)


RUN = RunOnBox("tiny", "/tier", "/data")


@dataclass(frozen=True)
class Echoed:
    request: dict[str, Any]
    pid: int


@dataclass(frozen=True)
class Echo(Question[Echoed], name="echo"):
    value: Any = None


@dataclass(frozen=True)
class Fail(Question[Echoed], name="fail"):
    kind: str


@dataclass(frozen=True)
class Break(Question[Echoed], name="break"):
    pass


def echo(hand: Hand, value: Any = None) -> Any:
    """What came back of the value."""
    return hand.ask(Echo(value), RUN).request["value"]


def agent(source: str = AGENT) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py"), source)
    return buffer.getvalue()


def make_hand(
    hosts: Hosts, folder: Path, box: str = "box-a", platform: Platform | None = None
) -> Hand:
    ssh = Ssh(box, Home(folder), print, sleep=lambda _: None)
    return Hand(ssh, platform or Platform(), str(hosts.data_dir), NAME, agent())


@pytest.fixture
def hosts(one_box: Hosts) -> Hosts:
    return one_box


@pytest.fixture
def hand(hosts: Hosts, tmp_path: Path) -> Iterator[Hand]:
    made = make_hand(hosts, tmp_path)
    yield made
    made.ssh.close()


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first word of each command that goes over ssh."""
    seen: list[str] = []

    def count(name: str) -> None:
        ask = getattr(Ssh, name)

        def counted(self: Ssh, words: list[str], *rest: object, **more: object) -> object:
            seen.append(words[0])
            return ask(self, words, *rest, **more)

        monkeypatch.setattr(Ssh, name, counted)

    count("run")
    count("converse")
    return seen


def test_a_question_is_answered_in_one_round_trip_once_the_box_is_known(
    hosts: Hosts, hand: Hand, tmp_path: Path, trips: list[str]
) -> None:
    value = {"text": "'; touch /tmp/pwn; é\n", "list": [1, None]}
    assert echo(hand, value) == value
    assert len(trips) == 2  # hello, the file with the question behind it
    trips.clear()
    assert echo(hand, 1) == 1
    assert len(trips) == 1
    # Another laptop process knows the box by its receipt.
    other = make_hand(hosts, tmp_path)
    trips.clear()
    assert echo(other, 2) == 2
    assert len(trips) == 1 and other.hello() == hand.hello()
    other.ssh.close()


def test_the_agents_file_lies_whole_below_the_data_folder_with_the_boxs_name(
    hosts: Hosts, hand: Hand
) -> None:
    echo(hand)
    folder = hosts.seen("box-a", hosts.data_dir / "boxcar")
    assert sorted(path.name for path in folder.iterdir()) == ["box.json", NAME]
    assert (folder / NAME).read_bytes() == agent()
    assert json.loads((folder / "box.json").read_text())["box"] == "box-a"


@pytest.mark.parametrize("kind", [InputError, TemporaryError, NoRoomError])
def test_what_the_box_raises_is_raised_here(hand: Hand, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="box-a: no such queue") as raised:
        hand.ask(Fail(kind.__name__), RUN)
    assert type(raised.value) is kind


def test_a_box_that_breaks_off_has_not_answered(hand: Hand) -> None:
    with pytest.raises(TemporaryError, match="the agent broke"):
        hand.ask(Break(), RUN)


@pytest.mark.parametrize("shell", ["/usr/bin/fish", "banner"])
def test_shells_and_homes_change_nothing(hosts: Hosts, tmp_path: Path, shell: str) -> None:
    if shell != "banner" and not Path(shell).exists():
        pytest.skip(f"no {shell} on this machine")
    hosts.set_up("box-a", shell=shell, home="my home")
    ssh = Ssh("box-a", Home(tmp_path), print)
    hand = Hand(ssh, Platform(), "~/the data", NAME, agent())
    assert echo(hand, "é") == "é"
    assert hosts.seen("box-a", "/tmp/box/my home/the data/boxcar/box.json").exists()
    ssh.close()


def test_a_box_that_lost_its_disk_gets_the_file_again(hosts: Hosts, hand: Hand) -> None:
    echo(hand)
    hosts.run("box-a", ["rm", "-r", f"{hosts.data_dir}/boxcar"])
    assert echo(hand, 1) == 1


def test_a_box_whose_python_went_is_greeted_again(hosts: Hosts, tmp_path: Path) -> None:
    python = hosts.home("box-a") / "python"
    hosts.run("box-a", ["sh", "-c", 'ln -s "$(command -v python3)" "$HOME/python"'])
    hand = make_hand(hosts, tmp_path, platform=Platform(env=Env("~/python")))
    echo(hand)
    hosts.run("box-a", ["rm", str(python)])
    with pytest.raises(InputError, match="found none at all"):
        echo(hand)
    hand.ssh.close()


def test_another_box_behind_the_alias_is_noticed_before_the_agent_runs(
    hosts: Hosts, hand: Hand
) -> None:
    echo(hand)
    hosts.set_up("box-a", hostname="somebody-else")
    with pytest.raises(InputError, match="expected host name box-a, found somebody-else"):
        echo(hand)


def test_two_aliases_of_one_box_are_told_apart(hosts: Hosts, hand: Hand, tmp_path: Path) -> None:
    echo(hand)
    with hosts.config.open("a") as config:
        config.write(f"Host twin\n HostName 10.99.0.2\n User root\n IdentityFile {hosts.key}\n")
    twin = make_hand(hosts, tmp_path, "twin")
    with pytest.raises(InputError, match="twin is a box that is already in use as box-a"):
        echo(twin)
    twin.ssh.close()
    # Also where the box was known before, and in the same round trip.
    marker = hosts.seen("box-a", hosts.data_dir / "boxcar/box.json")
    marker.write_text(marker.read_text().replace("box-a", "box-b"))
    with pytest.raises(InputError, match="box-a is a box that is already in use as box-b"):
        echo(hand)


def test_a_profile_that_does_not_know_the_box_writes_nothing(hosts: Hosts, tmp_path: Path) -> None:
    platform = Platform(Connection(Known("autodl-*")))
    hand = make_hand(hosts, tmp_path, platform=platform)
    with pytest.raises(InputError, match="is not a box of this profile"):
        echo(hand)
    assert list(hosts.seen("box-a", hosts.data_dir).iterdir()) == []
    hand.ssh.close()


def test_a_full_disk_is_told_as_one_and_nothing_half_is_left(hosts: Hosts, tmp_path: Path) -> None:
    hosts.limit("box-a", "size=64k")
    ssh = Ssh("box-a", Home(tmp_path), print)
    hand = Hand(ssh, Platform(), str(hosts.data_dir), NAME, agent() + bytes(1 << 20))
    with pytest.raises(NoRoomError, match="No space left"):
        echo(hand)
    assert list(hosts.seen("box-a", hosts.data_dir / "boxcar").iterdir()) == []
    ssh.close()


def test_many_questions_at_once_ship_the_file_once(hand: Hand, trips: list[str]) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: echo(hand, n), range(4)))
    assert found == [0, 1, 2, 3]
    assert len([word for word in trips if word != "sh"]) == 1


def _holding(hosts: Hosts) -> int:
    """Processes on the box that answer a question."""
    words = ["sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -cx answer"]
    return int(hosts.run("box-a", words, check=False).stdout or 0)


def test_a_held_question_stops_no_other_and_leaves_no_process(hosts: Hosts, tmp_path: Path) -> None:
    hosts.start_sshd("box-a", MaxSessions=1)
    ssh = Ssh("box-a", Home(tmp_path), print, sleep=lambda _: None)
    real = Hand(ssh, cast(Any, Platform()), str(hosts.data_dir), *agent_program())
    report = run_asks.Report(("q1",), True, {})
    mark = real.ask(report, RUN).mark
    assert mark
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(real.ask, run_asks.Wait(("q1",), mark, 60), RUN, timeout_s=LIMIT_S)
        until(lambda: _holding(hosts) == 1)
        assert real.ask(report, RUN).mark == mark, "by a connection of its own"
        assert not held.done()
        ssh.close()
        with pytest.raises(TemporaryError):
            held.result()
    until(lambda: _holding(hosts) == 0)


@pytest.fixture
def living(hosts: Hosts, tmp_path: Path) -> Iterator[Hand]:
    ssh = Ssh("box-a", Home(tmp_path), print, sleep=lambda _: None)
    hand = Hand(ssh, cast(Any, Platform()), str(hosts.data_dir), NAME, agent(LIVES_ON))
    echo(hand)
    yield hand
    ssh.close()


def _pid(hand: Hand, value: Any = None) -> int:
    return hand.ask(Echo(value), RUN).pid


def test_one_program_answers_one_question_after_the_other(hosts: Hosts, living: Hand) -> None:
    assert len({_pid(living, n) for n in range(5)}) == 1
    assert [echo(living, value) for value in ("é" * 100_000, [], "x")] == ["é" * 100_000, [], "x"]
    until(lambda: _holding(hosts) == 1)  # those of tests before may be ending
    living.ssh.close()
    until(lambda: _holding(hosts) == 0)


def test_what_died_between_two_questions_is_started_anew(hosts: Hosts, living: Hand) -> None:
    before = _pid(living)
    hosts.run("box-a", ["kill", "-9", str(before)])
    assert _pid(living) != before
    with pytest.raises(TemporaryError, match="did not answer"):
        echo(living, "die")
    assert echo(living, 1) == 1


def test_questions_at_once_do_not_wait_for_each_other(living: Hand) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda n: echo(living, n), range(12))) == list(range(12))


def test_a_program_that_was_long_unused_is_not_trusted(
    living: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _pid(living)
    monkeypatch.setattr(connection, "FRESH_S", -1.0)
    assert _pid(living) != before


def test_a_cut_connection_ends_the_question_and_the_next_one_finds_another(
    hosts: Hosts, living: Hand
) -> None:
    before = _pid(living)
    hosts.start_sshd("box-a")
    hosts.run("box-a", ["sh", "-c", "kill $(cat /proc/[0-9]*/stat | awk '$2 ~ /sshd/ {print $1}')"])
    hosts.start_sshd("box-a")
    until(lambda: _holding(hosts) == 0)
    assert _pid(living) != before
