"""Failures of one process that really happen here, from its log to what the agent does about it."""

from __future__ import annotations

import http.server
import os
import re
import socket
import sys
import threading
from collections.abc import Iterator

import pytest
from failing import end_of

pytestmark = pytest.mark.faults

# Each: by which row it is known, its class, and the script that fails.
OF_ONE_PROCESS = r"""
=== MOD FIX_CODE
import no_such_module
=== NAN RESUME_SAME
import torch
raise ValueError('Loss is nan, stopping training')
=== C2 FIX_DATA
import torch
path = out / "last.pt"
torch.save({"weight": torch.zeros(100_000)}, path)
os.truncate(path, path.stat().st_size // 2)
torch.load(path)
=== W-ONLY FIX_CODE
import torch
path = out / "last.pt"
torch.save({"optimizer": time.struct_time(range(9))}, path)
torch.load(path)
=== C18 FIX_CODE
import torch
state = torch.nn.Linear(2, 3).state_dict()
torch.nn.Linear(2, 4).load_state_dict(state)
=== U9W OUT_OF_MEMORY
import signal, torch

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 9

    def __getitem__(self, index):
        os.kill(os.getpid(), signal.SIGKILL)

list(torch.utils.data.DataLoader(Data(), num_workers=1))
=== DP4 FIX_DATA
import torch

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.zeros(index + 1)

list(torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1))
=== FD FIX_CONFIG
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
kept = [open(os.devnull) for _ in range(100)]
=== HOSTMEM OUT_OF_MEMORY
import resource, numpy
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
numpy.ones((1 << 33,))
=== U31 STOP_QUEUE
import torch
torch.zeros(1).to('cuda')
=== U27 FIX_CONFIG
import argparse
argparse.ArgumentParser().parse_args(["--learning-rat", "1"])
=== U26 FIX_CODE
import subprocess
(out / "x.sh").write_bytes(b"set -e\r\ncd /tmp\r\n")
subprocess.run(["bash", str(out / "x.sh")], check=True)
=== NOEXE STOP_QUEUE
import subprocess
(out / "x.sh").write_text("#!/no/such/python\n")
(out / "x.sh").chmod(0o755)
sys.exit(subprocess.run(["bash", "-c", str(out / "x.sh")]).returncode)
=== SEGV RESUME_SAME
import ctypes
ctypes.string_at(0)
=== ABRT RESUME_SAME
os.abort()
=== TERM RESUME_SAME
import signal
os.kill(os.getpid(), signal.SIGTERM)
=== 137-N RESUME_SAME
import signal
os.kill(os.getpid(), signal.SIGKILL)
=== HUP RESUME_SAME
import signal
os.kill(os.getpid(), signal.SIGHUP)
=== INT RESUME_SAME
import signal
os.kill(os.getpid(), signal.SIGINT)
time.sleep(9)
=== ILL STOP_QUEUE
import signal
os.kill(os.getpid(), signal.SIGILL)
=== EXIT1 FIX_CODE
raise KeyError('its own')
=== ENV FIX_CONFIG
os.environ['CITIES']
=== NORANK FIX_CONFIG
import torch
torch.distributed.init_process_group('gloo')
=== NOGIT FIX_CODE
import subprocess
subprocess.run(['git', '-C', '/', 'log'], check=True)
=== TIME_LIMIT TIME_LIMIT
import subprocess
print("epoch 1 step 2 loss 0.3", flush=True)
sys.exit(subprocess.run(["timeout", "0.1", "sleep", "9"]).returncode)
=== U27 FIX_CONFIG
sys.exit('please set --data to a folder')
=== FPE FIX_CODE
import signal
os.kill(os.getpid(), signal.SIGFPE)
=== HOSTMEM OUT_OF_MEMORY
import torch
try:
    torch.empty(1 << 46)
except RuntimeError as error:
    raise ValueError("the training failed") from error
=== EXIT1 FIX_CODE
import logging
try:
    open("/no/such/cache")
except OSError:
    logging.exception("could not read the cache")
for step in range(5):
    print(f"step {step} loss 0.3", flush=True)
{}["width"]
=== EXIT1 FIX_CODE
import torch

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return {}["image"]

list(torch.utils.data.DataLoader(Data(), num_workers=1))
=== BADFILE FIX_DATA
import zipfile
(out / "x.zip").write_bytes(b"PK, and no more")
zipfile.ZipFile(out / "x.zip")
=== BADFILE FIX_DATA
(out / "x.csv").write_bytes("naïve".encode("latin-1"))
(out / "x.csv").read_text("utf-8")
=== NAN RESUME_SAME
import torch
torch.distributions.Normal(torch.tensor([float("nan")]), 1.0)
=== PATH FIX_CONFIG
(out / ('x' * 300)).touch()
"""


@pytest.mark.parametrize(
    ("id", "course", "fails"),
    re.findall(r"^=== (\S+) (\S+)\n([^=].*?)(?=^===|\Z)", OF_ONE_PROCESS, re.M | re.S),
)
def test_what_ends_a_process_is_named_and_the_right_thing_follows(make_run, id, course, fails):
    end = end_of(make_run, fails)
    # What may be gone on with is, and the script fails once only.
    state = "verified" if course == "RESUME_SAME" else "failed"
    assert (end.failure, end.course, end.state) == (id, course, state), end


def test_a_port_that_is_taken_is_tried_again(make_run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        fails = f"""
        import torch.distributed as dist
        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:{port}", rank=0, world_size=1)
        """
        end = end_of(make_run, fails)
    assert (end.failure, end.course, end.state) == ("D4", "RESUME_SAME", "verified"), end


class _Hub(http.server.BaseHTTPRequestHandler):
    """Answers as its path says: a code, or never."""

    is_over = threading.Event()

    def do_GET(self) -> None:
        if self.path == "/never":
            self.is_over.wait()
            return
        self.send_response(int(self.path[1:]))
        self.send_header("Retry-After", "120")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    thread = threading.Thread(target=server.serve_forever)
    _Hub.is_over.clear()
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    _Hub.is_over.set()
    server.shutdown()
    thread.join()
    server.server_close()


FETCHES = {
    "requests": "import requests\nrequests.get('{url}', timeout=1).raise_for_status()",
    "urllib": "import urllib.request\nurllib.request.urlopen('{url}', timeout=1)",
}


ANSWERS = {
    "504": ("HTTP5XX", "WAIT_NETWORK"),
    "503": ("HTTP5XX", "WAIT_NETWORK"),
    "429": ("HF3", "WAIT_NETWORK"),
    "401": ("HF2", "ASK"),
    "404": ("HTTP404", "FIX_CONFIG"),
    "never": ("NET", "WAIT_NETWORK"),
}


@pytest.mark.parametrize("answers", ANSWERS)
@pytest.mark.parametrize("fetch", FETCHES.values(), ids=FETCHES)
def test_what_a_hub_answers_decides(make_run, hub, fetch, answers):
    id, course = ANSWERS[answers]
    end = end_of(make_run, fetch.format(url=f"{hub}/{answers}"))
    is_waited_for = course == "WAIT_NETWORK"
    assert (end.course, end.state) == (course, "verified" if is_waited_for else "failed"), end
    assert end.failure in (id, "RESET"), end


def test_a_name_that_cannot_be_looked_up_is_waited_for(make_run):
    end = end_of(make_run, "import requests\nrequests.get('https://hub.invalid/', timeout=5)")
    assert (end.failure, end.course, end.state) == ("DNS", "WAIT_NETWORK", "verified"), end


@pytest.mark.skipif(os.geteuid() != 0, reason="a network without a way out needs root")
def test_a_box_without_a_network_is_waited_for(make_run, tmp_path):
    python = tmp_path / "python-without-network"
    python.write_text(f'#!/bin/sh\nexec unshare -n {sys.executable} "$@"\n')
    python.chmod(0o755)
    fails = "import requests\nrequests.get('http://10.1.2.3/', timeout=5)"
    end = end_of(make_run, fails, training_python=str(python))
    assert (end.failure, end.course, end.state) == ("NET", "WAIT_NETWORK", "verified"), end
