"""TensorBoard on a box, through ssh: the page comes here, and its end is ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import stand_in_tensorboard
from hosts import BOX_ROOT, Hosts
from waiting import until

from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts.connection import Ssh
from boxcar.laptop.tensorboard.shown import OnBox

READ = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
# Not its own words, and not those of the program that starts it.
LIVES = ["pgrep", "-f", "tensorboard[.]main --logdir"]


def test_what_lies_on_a_box_is_shown_here_and_ends_with_the_connection(
    one_box: Hosts, tmp_path: Path
) -> None:
    site, logs = BOX_ROOT / "site", BOX_ROOT / "it's logs" / "cells"
    stand_in_tensorboard.install(one_box.seen("box-a", site))
    stand_in_tensorboard.write_event(one_box.seen("box-a", logs / "seg" / "out" / "tb"))
    ssh = Ssh("box-a", Home(tmp_path), print)
    try:
        place = OnBox(ssh, f"export PYTHONPATH={site}", sys.executable, str(logs))
        shown, port_here = place.show()
        assert shown.found().events == 1
        port = port_here(shown.port())
        words = [*one_box.laptop(), sys.executable, "-c", READ, f"http://127.0.0.1:{port}/"]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert said.strip() == "seg/out/tb"
        shown.close()
        until(lambda: not lives(one_box))
        again, _ = place.show()
        again.port()
        again._process.kill()  # the laptop's ssh dies, as with the laptop
        until(lambda: not lives(one_box))
        again.close()
    finally:
        ssh.close()


def lives(hosts: Hosts) -> bool:
    return hosts.run("box-a", LIVES, check=False).returncode == 0
