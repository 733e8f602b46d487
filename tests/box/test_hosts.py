"""What the other tests believe of their boxes."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hosts import NAMES, Hosts
from waiting import LIMIT_S

QUICK = ("-oBatchMode=yes", "-oConnectTimeout=1", "-oStrictHostKeyChecking=accept-new")


def ssh(hosts: Hosts, name: str, command: str) -> subprocess.CompletedProcess[str]:
    known = f"-oUserKnownHostsFile={hosts.folder / 'known_hosts'}"
    words = ["ssh", *QUICK, known, name, command]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_each_name_leads_to_a_box_of_its_own(hosts: Hosts) -> None:
    said = [ssh(hosts, name, "hostname; cat /proc/sys/kernel/random/boot_id") for name in NAMES]
    assert [done.stdout.split()[0] for done in said] == list(NAMES)
    assert len({done.stdout.split()[1] for done in said}) == 3


def test_the_shared_folder_is_shared_and_the_data_disk_and_tmp_are_private(hosts: Hosts) -> None:
    ssh(hosts, "box-a", f"touch {hosts.shared}/s {hosts.data_dir}/d /tmp/t")
    assert hosts.seen("box-b", hosts.shared / "s").exists()
    for private in (hosts.data_dir / "d", "/tmp/t"):
        assert hosts.seen("box-a", private).exists() and not hosts.seen("box-b", private).exists()
    assert not hosts.shared.exists(), "the laptop must not see what lies on the boxes"


def test_this_machines_own_network_has_nothing_of_it(hosts: Hosts) -> None:
    links = subprocess.run(["ip", "-o", "addr"], capture_output=True, text=True, check=True)
    assert "10.99.0." not in links.stdout
    names = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    assert "box-a" not in names.stdout


def test_a_box_that_is_cut_off_is_silent_and_the_others_answer(hosts: Hosts) -> None:
    hosts.cut("box-a")
    assert "timed out" in ssh(hosts, "box-a", "true").stderr
    assert ssh(hosts, "box-b", "true").returncode == 0
    hosts.heal("box-a")
    assert ssh(hosts, "box-a", "true").returncode == 0


def test_a_box_that_rejects_answers_by_a_reset_until_it_is_healed(hosts: Hosts) -> None:
    hosts.reject("box-a")
    assert "refused" in ssh(hosts, "box-a", "true").stderr
    hosts.heal("box-a")
    assert ssh(hosts, "box-a", "true").returncode == 0


def test_a_slow_link_is_slow_and_healed(hosts: Hosts) -> None:
    hosts.slow("box-a", "1mbit")
    shown = hosts.run("box-a", ["tc", "qdisc", "show", "dev", "eth0"]).stdout
    assert b"tbf" in shown and ssh(hosts, "box-a", "true").returncode == 0
    hosts.heal("box-a")
    assert b"tbf" not in hosts.run("box-a", ["tc", "qdisc", "show", "dev", "eth0"]).stdout


def test_a_reboot_ends_every_process_and_keeps_the_disks(hosts: Hosts) -> None:
    ssh(hosts, "box-a", f"touch {hosts.data_dir}/d /tmp/t; setsid sleep 1234 </dev/null >&0 2>&1 &")
    before = hosts.run("box-a", ["cat", "/proc/sys/kernel/random/boot_id"]).stdout
    assert b"sleep 1234" in hosts.run("box-a", ["ps", "ax"]).stdout
    hosts.reboot("box-a")
    assert b"sleep 1234" not in hosts.run("box-a", ["ps", "ax"]).stdout
    assert hosts.run("box-a", ["cat", "/proc/sys/kernel/random/boot_id"]).stdout != before
    assert hosts.seen("box-a", hosts.data_dir / "d").exists() and ssh(
        hosts, "box-a", "test -e /tmp/t"
    )


def test_a_process_that_ends_without_a_parent_is_reaped(hosts: Hosts) -> None:
    ssh(hosts, "box-a", "(sleep 0.1 &) </dev/null >/dev/null 2>&1")
    ssh(hosts, "box-a", "sleep 0.3")
    assert b"defunct" not in hosts.run("box-a", ["ps", "ax"]).stdout


def test_a_destroyed_box_does_not_come_back_and_the_shared_folder_stays(hosts: Hosts) -> None:
    hosts.seen("box-a", hosts.shared / "kept").touch()
    hosts.destroy("box-a")
    assert ssh(hosts, "box-a", "true").returncode == 255
    assert hosts.seen("box-b", hosts.shared / "kept").exists()


@pytest.mark.parametrize("shell", ["/bin/dash", "/usr/bin/fish", "banner"])
def test_a_box_may_have_another_shell_and_a_home_with_a_space(hosts: Hosts, shell: str) -> None:
    if shell != "banner" and not Path(shell).exists():
        pytest.skip(f"no {shell} on this machine")
    hosts.set_up("box-a", shell=shell, home="my home")
    done = ssh(hosts, "box-a", "pwd")
    assert done.stdout.splitlines()[-1] == "/tmp/box/my home" == str(hosts.home("box-a"))
    assert ("Welcome" in done.stdout) == (shell == "banner")


def test_a_new_host_key_is_offered_at_once(hosts: Hosts) -> None:
    before = hosts.fingerprint("box-a")
    hosts.new_host_key("box-a")
    ssh(hosts, "box-a", "true")
    words = ["ssh-keygen", "-lf", str(hosts.folder / "known_hosts")]
    seen = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert before not in seen and hosts.fingerprint("box-a") in seen


def test_a_disk_may_be_made_small(hosts: Hosts) -> None:
    hosts.limit("box-a", "size=64k")
    with pytest.raises(OSError, match="No space"):
        hosts.seen("box-a", hosts.data_dir / "big").write_bytes(bytes(1 << 20))


KILLED = """
import sys, time
from pathlib import Path
sys.path[:] = sys.argv[2:]
from hosts import Hosts
made = Hosts(Path(sys.argv[1]))
print(made.init_pid("box-a"), flush=True)
time.sleep(60)
"""


def test_a_killed_test_leaves_no_process_behind(hosts: Hosts, tmp_path: Path) -> None:
    # `hosts` only for the skip.
    words = [sys.executable, "-c", KILLED, str(tmp_path / "again"), *sys.path]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as test:
        assert test.stdout
        pid = int(test.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        watch = os.pidfd_open(pid)
        test.send_signal(signal.SIGKILL)
    readable, _, _ = select.select([watch], [], [], LIMIT_S)
    os.close(watch)
    assert readable, "the box goes on without its test"
