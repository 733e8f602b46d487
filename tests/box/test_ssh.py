"""Commands on real sshds: what arrives, what stops, what heals."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from host_scripts import address
from hosts import Hosts
from waiting import LIMIT_S, until

from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts import connection, host_keys
from boxcar.laptop.hosts.connection import Ssh
from boxcar.laptop.hosts.ssh_errors import (
    HostKeyChanged,
    KeyRefused,
    LinkCut,
    ProxyFailed,
    TooManyConnections,
    Unreachable,
)
from boxcar.laptop.places import ssh_site
from boxcar.shared.errors import InputError

FOLDER = 'it\'s a "project" here'


@pytest.fixture
def hosts(one_box: Hosts) -> Hosts:
    return one_box


@pytest.fixture
def box(hosts: Hosts, tmp_path: Path) -> Iterator[Ssh]:
    made = Ssh("box-a", Home(tmp_path / FOLDER), print, sleep=lambda _: None)
    yield made
    made.close()


@contextlib.contextmanager
def impatient() -> Iterator[None]:
    """Bounds that a test can wait for, for as long as the box is cut off: one that is well may need
    longer on a busy machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "CONNECT_TIMEOUT_S", 1)
        patch.setattr(connection, "ALIVE_EVERY_S", 1)
        patch.setattr(connection, "ALIVE_MISSED", 2)
        yield


def test_a_command_gets_its_input_and_gives_its_output_and_code(box: Ssh) -> None:
    data = bytes(range(256)) * 1000
    assert box.run(["cat"], data).out == data
    ran = box.run(["sh", "-c", "echo out; echo err >&2; exit 7"])
    assert (ran.code, ran.out, ran.err) == (7, b"out\n", "err\n")
    assert box.run(["no-such-program"]).code == 127


def test_what_a_command_says_is_heard_while_it_runs(box: Ssh, hosts: Hosts) -> None:
    """A verb that ends the box takes the connection along, and its answer with it."""
    go = Hosts.data_dir / "go"
    waits = f"echo it begins >&2; until [ -e {go} ]; do sleep 0.1; done; exit 3"

    def let_it_end(said: bytes) -> None:
        if b"it begins" in said:
            hosts.seen("box-a", go).touch()

    assert box.run(["sh", "-c", waits], hear=let_it_end).code == 3


CORPUS = [
    *("", " ", "  two  spaces ", "a\nb\n", "\n", "\t", "\r", "-rf", "--", "~", "~root", "*", "?"),
    *(
        "$HOME",
        "${HOME}",
        "$(touch pwn)",
        "`touch pwn`",
        "; touch pwn",
        "&& touch pwn",
        "|touch pwn",
    ),
    *(
        "'",
        '"',
        "''",
        "'; touch pwn; '",
        '"; touch pwn; "',
        "\\",
        "\\\\",
        "a\\'b",
        "'\\",
        "\\n",
        "!x",
    ),
    *(
        "#",
        "x # y",
        "{a,b}",
        "[a-z]",
        "a=b",
        "<x",
        ">pwn",
        "2>&1",
        "(touch pwn)",
        "%n",
        "^x^y",
        "\x1b",
    ),
    *(
        "é Á 中文 \u202e",
        "$n",
        "${n#x}",
        "\x01\x7f",
        "x" * 5000,
        "$'\\x41'",
        "set x=1",
        "\\\ntouch pwn",
    ),
]


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/dash", "/usr/bin/fish", "banner"])
def test_words_arrive_as_they_are_whatever_the_login_shell(
    hosts: Hosts, box: Ssh, shell: str
) -> None:
    if shell != "banner" and not Path(shell).exists():
        pytest.skip(f"no {shell} on this machine")
    hosts.set_up("box-a", shell=shell, home="my home")
    ran = box.run(["sh", "-c", 'printf "[%s]" "$PWD"; printf "%s\\0" "$@"', "sh", *CORPUS], b"data")
    home, _, arrived = ran.out.partition(b"]")
    assert home.endswith(b"[/tmp/box/my home")
    assert arrived.decode().split("\0")[:-1] == CORPUS
    assert box.run(["cat"], b"after\n").out.endswith(b"after\n")
    assert not hosts.seen("box-a", hosts.home("box-a") / "pwn").exists()


@pytest.mark.parametrize(
    "alias",
    ["x;touch pwn", "-oProxyCommand=touch pwn", "", "a b", "a\n", "$(id)", "a/b", "..", "@x", "x'"],
)
def test_an_alias_that_is_no_plain_name_is_refused(tmp_path: Path, alias: str) -> None:
    with pytest.raises(InputError, match="use letters"):
        Ssh(alias, Home(tmp_path), print)
    assert list(tmp_path.iterdir()) == []


def test_a_laptop_without_ssh_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="openssh-client"):
        Ssh("box-a", Home(tmp_path), print)


def test_the_first_contact_leaves_a_receipt_and_says_it_once(
    hosts: Hosts, box: Ssh, capsys: pytest.CaptureFixture[str]
) -> None:
    box.run(["true"])
    record = host_keys.read_host_keys(box.home, "box-a")
    assert record is not None
    assert (record.host, record.port) == ("10.99.0.2", 22)
    assert record.fingerprint == hosts.fingerprint("box-a")
    assert capsys.readouterr().out.count(record.fingerprint) == 1
    again = Ssh("box-a", box.home, print)
    again.run(["true"])
    again.close()
    assert "seen for the first time" not in capsys.readouterr().out
    assert not Path("~/.ssh/known_hosts").expanduser().exists() or "box-a" not in Path(
        "~/.ssh/known_hosts"
    ).expanduser().read_text(errors="replace")


def test_a_changed_key_stops_with_both_fingerprints_until_it_is_accepted(
    hosts: Hosts, box: Ssh
) -> None:
    box.run(["true"])
    old = hosts.fingerprint("box-a")
    hosts.new_host_key("box-a")
    again = Ssh("box-a", box.home, print)
    with pytest.raises(HostKeyChanged) as raised:
        again.run(["touch", "/tmp/pwn"])
    new = hosts.fingerprint("box-a")
    assert raised.value.recorded == (old,) and raised.value.offered == new
    assert not hosts.seen("box-a", "/tmp/pwn").exists()
    with pytest.raises(HostKeyChanged):  # asking again does not wear it down
        again.run(["true"])
    # The command in the message is one that a shell takes.
    [typed] = [line for line in str(raised.value).splitlines() if "ssh-keygen" in line]
    words = shlex.split(typed[typed.index("ssh-keygen") :])
    subprocess.run(words, check=True, capture_output=True)
    assert again.run(["true"]).code == 0
    again.close()
    record = host_keys.read_host_keys(box.home, "box-a")
    assert record is not None and record.fingerprint == new


def test_a_key_that_the_box_does_not_know_is_told(hosts: Hosts, box: Ssh) -> None:
    hosts.seen("box-a", "/tmp/box/etc/authorized_keys").write_text("")
    with pytest.raises(KeyRefused, match="publickey"):
        box.run(["true"])


def test_a_box_without_sshd_is_tried_a_few_times_with_longer_pauses(
    hosts: Hosts, tmp_path: Path
) -> None:
    hosts.stop_sshd("box-a")
    pauses: list[float] = []
    box = Ssh("box-a", Home(tmp_path), print, sleep=pauses.append)
    with pytest.raises(Unreachable, match="refused"):
        box.run(["true"], tries=4)
    assert len(pauses) == 3 and pauses[0] <= 0.5 and 1 <= pauses[2] <= 2
    hosts.start_sshd("box-a")
    assert box.run(["true"]).code == 0
    box.close()


def test_a_box_behind_a_cut_link_is_unreachable_at_once_and_comes_back(
    hosts: Hosts, box: Ssh
) -> None:
    hosts.cut("box-a")
    with impatient(), pytest.raises(Unreachable, match="timed out"):
        box.run(["true"])
    hosts.heal("box-a")
    assert box.run(["true"]).code == 0


def test_a_link_that_is_cut_under_a_command_ends_it_and_is_left_behind(
    hosts: Hosts, box: Ssh
) -> None:

    def cut_once_it_runs() -> None:
        until(hosts.seen("box-a", "/tmp/count").exists)
        hosts.cut("box-a")

    threading.Thread(target=cut_once_it_runs, daemon=True).start()
    with impatient(), pytest.raises(LinkCut, match="may have done"):
        box.run(["sh", "-c", f"echo x >>/tmp/count; sleep {LIMIT_S}"], timeout_s=LIMIT_S)
    hosts.heal("box-a")
    # A new connection, and what was sent once was not sent again by itself.
    assert box.run(["cat", "/tmp/count"]).out == b"x\n"


def test_a_command_that_takes_too_long_ends_and_its_connection_is_left_behind(
    hosts: Hosts, box: Ssh
) -> None:
    box.run(["true"])
    with pytest.raises(LinkCut, match=r"within 0\.3 s"):
        box.run(["sleep", "60"], timeout_s=0.3)
    assert box.run(["echo", "here"]).out == b"here\n"
    log = hosts.seen("box-a", "/tmp/box/etc/sshd.log").read_text()
    assert log.count("Accepted publickey") == 2


def test_a_command_that_fails_like_ssh_is_sent_once(box: Ssh) -> None:
    script = "echo x >>/tmp/count; echo 'ssh: connect to host x port 22: Connection refused' >&2"
    with pytest.raises(LinkCut, match="Connection refused"):
        box.run(["sh", "-c", f"{script}; exit 255"])
    assert box.run(["cat", "/tmp/count"]).out == b"x\n"


def test_a_reboot_in_between_is_not_noticed(hosts: Hosts, box: Ssh) -> None:
    box.run(["true"])
    hosts.reboot("box-a")
    assert box.run(["echo", "up"]).out == b"up\n"


def test_a_crowded_sshd_lets_all_in_after_a_while(hosts: Hosts, tmp_path: Path) -> None:
    hosts.start_sshd("box-a", MaxStartups="1:100:1")
    pauses: list[float] = []

    def sleep(pause_s: float) -> None:
        pauses.append(pause_s)
        time.sleep(pause_s / 4)

    boxes = [Ssh("box-a", Home(tmp_path), print, sleep=sleep) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        ran = list(pool.map(lambda box: box.run(["echo", "in"], tries=20), boxes))
    assert [one.out for one in ran] == [b"in\n"] * 6
    assert pauses, "nobody was turned away: the test shows nothing"
    for box in boxes:
        box.close()


def test_a_box_that_lets_nobody_in_for_a_while_is_not_off(
    hosts: Hosts, box: Ssh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_site, "PAUSE_S", dict.fromkeys(ssh_site.Sign, 0.0))
    monkeypatch.setattr(ssh_site, "WITHIN_S", 0.0)
    hosts.start_sshd("box-a", MaxStartups=1, LoginGraceTime=0)
    stranger = f"exec 3<>/dev/tcp/{address(2)}/22; read -r greeting <&3; echo in; cat"
    with subprocess.Popen(
        [*hosts.laptop(), "bash", "-c", stranger], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as waits:
        assert waits.stdout is not None and waits.stdout.readline() == b"in\n"
        with pytest.raises(TooManyConnections, match="MaxStartups"):
            box.run(["true"])
        sign = ssh_site.wait_until_silent(lambda _: box.run(["true"]), "box-a", [])
        assert sign is ssh_site.Sign.SHUT_OUT
        assert waits.stdin is not None
        waits.stdin.close()
    until(
        lambda: (
            ssh_site.look_for_signs(lambda _: box.run(["true"]), "box-a", [])
            is ssh_site.Sign.ANSWERS
        )
    )
    hosts.stop_sshd("box-a")
    box.close()
    anew = Ssh("box-a", box.home, print, sleep=lambda _: None)
    assert ssh_site.wait_until_silent(lambda _: anew.run(["true"]), "box-a", []) is None
    anew.close()


def through(hosts: Hosts, way: str, jump: str = "") -> None:
    """From now on the way to `behind`, which is box-a, goes through `jump`, which is box-a too."""
    known_hosts = hosts.folder / "known_by_the_person"
    key = hosts.seen("box-a", "/tmp/box/etc/host_key.pub").read_text()
    known_hosts.write_text(f"{address(2)} {key}")
    host = f"HostName {address(2)}\n User root\n IdentityFile {hosts.key}\n"
    hosts.config.write_text(
        f"Host behind\n {way}\n {host}\n"
        f"Host jump\n {jump}\n {host} UserKnownHostsFile {known_hosts}\n"
    )


@pytest.mark.parametrize(
    ("way", "jump", "told"),
    [
        ("ProxyJump jump", "UserKnownHostsFile /dev/null", "Host key verification failed"),
        ("ProxyJump jump", "IdentitiesOnly yes\n User nobody", "Permission denied ("),
        ("ProxyJump jump", "Port 2222", "Connection refused"),
        ("ProxyJump jump", "HostName no-such.invalid", "Could not resolve hostname"),
        ("ProxyCommand no-such-tunnel access ssh", "", "no-such-tunnel"),
        ("ProxyCommand sh -c 'echo WHY >&2; exit 1'", "", "WHY"),
    ],
)
def test_what_leads_to_the_box_says_what_is_wrong_with_it(
    hosts: Hosts, tmp_path: Path, way: str, jump: str, told: str
) -> None:
    through(hosts, way, jump)
    box = Ssh("behind", Home(tmp_path), print, sleep=lambda _: None)
    with pytest.raises(ProxyFailed, match=re.escape(told)) as failed:
        box.run(["true"])
    to_type = "ssh jump true" if "ProxyJump" in way else "ssh behind true"
    assert to_type in str(failed.value) and "ssh-keygen -R" not in str(failed.value)
    assert not failed.value.is_brief or told == "Connection refused"
    # It says nothing about the box, so nobody calls that off.
    assert ssh_site.look_for_signs(lambda _: box.run(["true"]), "behind", []) is ssh_site.Sign.LOST
    box.close()


def test_a_box_behind_a_jump_host_is_spoken_to_and_what_the_jump_host_says_of_it_is_told(
    hosts: Hosts, tmp_path: Path
) -> None:
    through(hosts, "ProxyJump jump")
    box = Ssh("behind", Home(tmp_path), print, sleep=lambda _: None)
    assert box.run(["echo", "here"]).out == b"here\n"
    box.close()
    through(hosts, "ProxyJump jump\n Port 2222")
    box = Ssh("behind", Home(tmp_path), print, sleep=lambda _: None)
    with pytest.raises(Unreachable, match="connection refused") as refused:
        box.run(["true"])
    assert refused.value.is_brief
    assert (
        ssh_site.look_for_signs(lambda _: box.run(["true"]), "behind", [])
        is ssh_site.Sign.TURNED_AWAY
    )
    box.close()


def test_parallel_commands_share_one_connection(hosts: Hosts, box: Ssh) -> None:
    with ThreadPoolExecutor(4) as pool:
        ran = list(pool.map(lambda n: box.run(["echo", str(n)]), range(8)))
    assert [one.out for one in ran] == [f"{n}\n".encode() for n in range(8)]
    log = hosts.seen("box-a", "/tmp/box/etc/sshd.log").read_text()
    assert log.count("Accepted publickey") == 1


def test_a_box_that_allows_one_session_answers_side_by_side(hosts: Hosts, box: Ssh) -> None:
    """ssh opens another connection where the shared one takes no second session."""
    hosts.start_sshd("box-a", MaxSessions=1)
    with ThreadPoolExecutor(3) as pool:
        ran = list(pool.map(lambda n: box.run(["sh", "-c", f"sleep 0.5; echo {n}"]), range(3)))
    assert [one.out for one in ran] == [b"0\n", b"1\n", b"2\n"]


def test_where_no_socket_can_be_made_each_command_connects_by_itself(
    hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 40) / ("y" * 20)
    long.mkdir(parents=True)
    monkeypatch.setattr(connection, "_SAFE_PATH", re.compile(".*"))
    monkeypatch.setattr(connection, "_told_alone", [])
    monkeypatch.setattr(connection.tempfile, "tempdir", str(long))
    told: list[str] = []
    made = [Ssh("box-a", Home(tmp_path / name), told.append) for name in ("one", "two")]
    for box in made:
        assert box.run(["cat"], b"data").out == b"data"
        assert box.run(["sh", "-c", "exit 7"]).code == 7
        assert host_keys.fingerprints(box.home, "box-a"), "its key was not kept"
        box.close()
    assert len([text for text in told if "cannot hold a socket" in text]) == 1


def test_a_connection_that_was_long_unused_is_not_trusted(
    hosts: Hosts, box: Ssh, monkeypatch: pytest.MonkeyPatch
) -> None:
    box.run(["true"])
    monkeypatch.setattr(connection, "FRESH_S", -1.0)
    assert box.run(["true"]).code == 0
    log = hosts.seen("box-a", "/tmp/box/etc/sshd.log").read_text()
    assert log.count("Accepted publickey") == 2


def test_a_connection_that_nobody_uses_ends_by_itself(
    box: Ssh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PERSIST_S", 1)
    box.run(["true"])
    until(lambda: not box._masters[0].exists(), "the connection ends")


def test_close_ends_the_connection_and_leaves_no_file(hosts: Hosts, box: Ssh) -> None:
    box.run(["true"])
    socket_path = box._masters[0]
    assert socket_path.is_socket() and socket_path.parent.stat().st_mode & 0o077 == 0
    box.close()
    assert not socket_path.parent.exists()
    with socket.socket(socket.AF_UNIX) as client, pytest.raises(OSError, match="No such file"):
        client.connect(str(socket_path))


def test_what_is_secret_stands_in_no_command_line(hosts: Hosts, box: Ssh) -> None:
    box.run(["true"])
    done = threading.Event()
    seen: list[bytes] = []
    waits = "until [ -e /tmp/box/home/go ]; do sleep 0.05; done; cat >/tmp/box/home/key"
    with ThreadPoolExecutor(2) as pool:
        watching = pool.submit(_watch_command_lines, done, seen)
        writing = pool.submit(box.run, ["sh", "-c", waits], b"canary-8431")
        until(lambda: any(b"/tmp/box/home/key" in each for each in list(seen)), "it was looked at")
        hosts.run("box-a", ["touch", "/tmp/box/home/go"])
        writing.result()
        done.set()
        watching.result()
    assert hosts.seen("box-a", "/tmp/box/home/key").read_text() == "canary-8431"
    everything = b"\n".join(seen)
    assert b"/tmp/box/home/key" in everything and b"canary-8431" not in everything


def _watch_command_lines(done: threading.Event, seen: list[bytes]) -> None:
    while not done.is_set():
        for process in Path("/proc").glob("[0-9]*"):
            for name in ("cmdline", "environ"):
                try:
                    seen.append((process / name).read_bytes())
                except OSError:
                    continue


def test_rsync_goes_over_it_from_a_folder_with_quotes_and_spaces(hosts: Hosts, box: Ssh) -> None:
    source = box.home.root / "results"
    source.mkdir()
    (source / "a file").write_bytes(b"bytes")
    box.run(["true"])
    target = f"box-a:{hosts.data_dir}/"
    words = ["rsync", "-r", "-s", "-e", box.rsync_shell(), f"{source}/", target]
    subprocess.run(words, check=True)
    assert hosts.seen("box-a", hosts.data_dir / "a file").read_bytes() == b"bytes"


def test_a_persons_own_config_does_not_get_in_the_way(hosts: Hosts, box: Ssh) -> None:
    with hosts.config.open("a") as config:
        config.write(
            "Host *\n RemoteCommand echo theirs\n RequestTTY force\n ForwardAgent yes\n"
            " LocalForward 2222 localhost:22\n LogLevel QUIET\n StrictHostKeyChecking no\n"
            " ControlMaster auto\n ControlPath /tmp/theirs-%C\n HashKnownHosts yes\n"
        )
    assert box.run(["echo", "ours"]).out == b"ours\n"
    record = json.loads(box.home.host("box-a").read_text())
    assert record["fingerprint"] == hosts.fingerprint("box-a")
    hosts.seen("box-a", "/tmp/box/etc/authorized_keys").write_text("")
    box.close()
    with pytest.raises(KeyRefused):
        Ssh("box-a", box.home, print).run(["true"])


def test_a_connection_that_is_closed_ends_who_waits_for_a_box_that_hangs(
    box: Ssh, hosts: Hosts
) -> None:
    began = Hosts.data_dir / "began"
    with ThreadPoolExecutor() as pool:
        waits = pool.submit(box.run, ["sh", "-c", f"touch {began}; sleep 1000"], timeout_s=900)
        until(hosts.seen("box-a", began).exists, "the command on the box")
        hosts.cut("box-a")
        box.close()
        with pytest.raises(Unreachable, match="closed here"):
            waits.result()
    with pytest.raises(Unreachable, match="closed here"):
        box.run(["true"])
