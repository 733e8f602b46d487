"""Who a box is, asked over real ssh before anything is written to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hosts import Hosts

from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts import identify
from boxcar.laptop.hosts.connection import Ssh
from boxcar.laptop.hosts.identify import Hello
from boxcar.shared.errors import DamagedError, InputError


@dataclass(frozen=True)
class Known:
    """What a profile knows of its boxes."""

    hostname: str | None = None
    env: str | None = None


@pytest.fixture
def hosts(one_box: Hosts) -> Hosts:
    return one_box


@pytest.fixture
def box(hosts: Hosts, tmp_path: Path) -> Iterator[Ssh]:
    made = Ssh("box-a", Home(tmp_path), print, sleep=lambda _: None)
    yield made
    made.close()


def greet(box: Ssh, identity: Known | None = None, data_dir: str = "~/data", **more: str) -> Hello:
    return identify.greet(box, identity or Known(), data_dir, more.get("agent_python", "auto"))


def test_a_box_says_who_it_is_and_what_it_has_and_nothing_is_written(
    hosts: Hosts, box: Ssh
) -> None:
    found = greet(box, Known("box-?"))
    assert (found.hostname, found.home) == ("box-a", "/tmp/box/home")
    assert found.data_dir == found.expand("~/data") == "/tmp/box/home/data"
    assert found.python.startswith("/") and found.has_rsync and "tar" in found.tools
    assert not hosts.seen("box-a", found.data_dir).exists()
    assert identify.kept_hello(box) == found


@pytest.mark.parametrize("shell", ["/usr/bin/fish", "banner"])
def test_another_shell_and_a_home_with_a_space_change_nothing(
    hosts: Hosts, box: Ssh, shell: str
) -> None:
    if shell != "banner" and not Path(shell).exists():
        pytest.skip(f"no {shell} on this machine")
    hosts.set_up("box-a", shell=shell, home="my home")
    found = greet(box)
    assert found.data_dir == "/tmp/box/my home/data"
    # rsync takes a banner for its own protocol.
    assert found.has_rsync == (shell != "banner")


def test_a_box_with_another_name_than_the_platforms_is_refused(box: Ssh) -> None:
    with pytest.raises(InputError, match=r"expected a host name like 'autodl-\*', found 'box-a'"):
        greet(box, Known("autodl-*"))
    assert identify.kept_hello(box) is None


def test_an_instance_is_known_by_a_variable_of_its_first_process(hosts: Hosts, box: Ssh) -> None:
    with pytest.raises(InputError, match="in the variable POD_ID, found none"):
        greet(box, Known(env="POD_ID"))
    # The boot script's own environment is what a container's first process was given.
    hosts.set_up("box-a", environment={"POD_ID": "pod-1"})
    assert greet(box, Known(env="POD_ID")).instance_id == "pod-1"
    hosts.set_up("box-a", environment={"POD_ID": "pod-2"})
    with pytest.raises(InputError, match="expected instance pod-1, found pod-2"):
        greet(box, Known(env="POD_ID"))


def test_a_box_that_calls_itself_otherwise_than_before_stops_until_it_is_accepted(
    hosts: Hosts, box: Ssh
) -> None:
    greet(box)
    hosts.set_up("box-a", hostname="somebody-else")
    with pytest.raises(InputError, match="expected host name box-a, found somebody-else") as e:
        greet(box)
    receipt = box.home.host("box-a")
    assert str(e.value).endswith(f"type: rm {receipt}")
    receipt.unlink()
    again = Ssh("box-a", box.home, print)
    assert greet(again).hostname == "somebody-else"
    again.close()


def marker(hosts: Hosts, text: str) -> None:
    file = hosts.seen("box-a", hosts.data_dir / "boxcar/box.json")
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


def test_an_alias_that_leads_to_another_of_your_boxes_is_refused(hosts: Hosts, box: Ssh) -> None:
    marker(hosts, '{"format": "boxcar.box/1", "box": "box-b"}')
    with pytest.raises(
        InputError, match="box-a is a box that is already in use as box-b"
    ) as raised:
        greet(box, data_dir=str(hosts.data_dir))
    assert "ssh box-a 'rm /tmp/box/data/boxcar/box.json'" in str(raised.value)
    marker(hosts, '{"format": "boxcar.box/1",\n "box": "box-a"}')
    assert greet(box, data_dir=str(hosts.data_dir)).data_dir == "/tmp/box/data"


def test_a_damaged_marker_is_not_taken_for_one_of_ours(hosts: Hosts, box: Ssh) -> None:
    marker(hosts, '{"format": "boxcar.box')
    with pytest.raises(DamagedError, match="type: ssh box-a"):
        greet(box, data_dir=str(hosts.data_dir))


def test_the_interpreter_is_the_profiles_or_the_first_that_is_new_enough(
    hosts: Hosts, box: Ssh, tmp_path: Path
) -> None:
    conda = hosts.home("box-a") / "miniconda3/bin"
    hosts.run("box-a", ["mkdir", "-p", str(conda)])
    hosts.run("box-a", ["ln", "-s", greet(box).python, str(conda / "python")])
    found = greet(box, agent_python="~/miniconda3/bin/python")
    assert found.python == str(conda / "python")
    old = "#!/bin/sh\ncase $* in *exit*) exit 1 ;; esac\necho 3.8.10\n"
    hosts.seen("box-a", "/tmp/old").write_text(old)
    hosts.run("box-a", ["chmod", "+x", "/tmp/old"])
    with pytest.raises(InputError, match=r"3\.10 or newer as /tmp/old, found 3\.8\.10 /tmp/old"):
        greet(box, agent_python="/tmp/old")
    with pytest.raises(InputError, match="found none at all"):
        greet(box, agent_python="/no/python")


def test_an_earlier_answer_counts_only_for_the_same_questions(box: Ssh) -> None:
    kept = greet(box, Known("box-*"))
    assert identify.fits_plan(kept, Known("box-*"), "~/data", "auto")
    assert not identify.fits_plan(kept, Known("autodl-*"), "~/data", "auto")
    assert not identify.fits_plan(kept, Known(env="POD_ID"), "~/data", "auto")
    assert not identify.fits_plan(kept, Known(), "~/elsewhere", "auto")
    assert not identify.fits_plan(kept, Known(), "~/data", "/usr/bin/python3")


def test_a_receipt_that_is_no_receipt_is_not_believed(box: Ssh) -> None:
    greet(box)
    receipt = box.home.host("box-a")
    receipt.write_text(json.dumps(json.loads(receipt.read_text()) | {"port": "22"}))
    with pytest.raises(DamagedError, match="type: rm"):
        greet(box)
