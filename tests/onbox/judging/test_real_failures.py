"""Failures of one process that really happen here, from its log to what the agent does about it."""

from __future__ import annotations

import http.server
import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from failing import end_of

pytestmark = pytest.mark.faults

# What fails, by which row it is known, its class, and where the cell is after the agent's end.
OF_ONE_PROCESS = [
    ("import no_such_module", "MOD", "FIX_CODE", "failed"),
    (
        "import torch\nraise ValueError('Loss is nan, stopping training')",
        "NAN",
        "RESUME_SAME",
        "verified",
    ),
    (
        """
        import torch
        path = out / "last.pt"
        torch.save({"weight": torch.zeros(100_000)}, path)
        os.truncate(path, path.stat().st_size // 2)
        torch.load(path)
        """,
        "C2",
        "FIX_DATA",
        "failed",
    ),
    (
        """
        import torch
        path = out / "last.pt"
        torch.save({"optimizer": time.struct_time(range(9))}, path)
        torch.load(path)
        """,
        "W-ONLY",
        "FIX_CODE",
        "failed",
    ),
    (
        """
        import torch
        state = torch.nn.Linear(2, 3).state_dict()
        torch.nn.Linear(2, 4).load_state_dict(state)
        """,
        "C18",
        "FIX_CODE",
        "failed",
    ),
    (
        """
        import signal, torch

        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 9

            def __getitem__(self, index):
                os.kill(os.getpid(), signal.SIGKILL)

        list(torch.utils.data.DataLoader(Data(), num_workers=1))
        """,
        "U9W",
        "OUT_OF_MEMORY",
        "failed",
    ),
    (
        """
        import torch

        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, index):
                return torch.zeros(index + 1)

        list(torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1))
        """,
        "DP4",
        "FIX_DATA",
        "failed",
    ),
    (
        """
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        kept = [open(os.devnull) for _ in range(100)]
        """,
        "FD",
        "FIX_CONFIG",
        "failed",
    ),
    (
        """
        import resource, numpy
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        numpy.ones((1 << 33,))
        """,
        "HOSTMEM",
        "OUT_OF_MEMORY",
        "failed",
    ),
    ("import torch\ntorch.zeros(1).to('cuda')", "U31", "STOP_QUEUE", "failed"),
    (
        """
        import argparse
        argparse.ArgumentParser().parse_args(["--learning-rat", "1"])
        """,
        "U27",
        "FIX_CONFIG",
        "failed",
    ),
    (
        r"""
        import subprocess
        (out / "x.sh").write_bytes(b"set -e\r\ncd /tmp\r\n")
        subprocess.run(["bash", str(out / "x.sh")], check=True)
        """,
        "U26",
        "FIX_CODE",
        "failed",
    ),
    (
        """
        import subprocess
        (out / "x.sh").write_text("#!/no/such/python\\n")
        (out / "x.sh").chmod(0o755)
        sys.exit(subprocess.run(["bash", "-c", str(out / "x.sh")]).returncode)
        """,
        "NOEXE",
        "STOP_QUEUE",
        "failed",
    ),
    ("import ctypes\nctypes.string_at(0)", "SEGV", "RESUME_SAME", "verified"),
    ("os.abort()", "ABRT", "RESUME_SAME", "verified"),
    ("import signal\nos.kill(os.getpid(), signal.SIGTERM)", "TERM", "RESUME_SAME", "verified"),
    ("import signal\nos.kill(os.getpid(), signal.SIGKILL)", "137-N", "RESUME_SAME", "verified"),
    ("import signal\nos.kill(os.getpid(), signal.SIGHUP)", "HUP", "RESUME_SAME", "verified"),
    (
        "import signal\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)",
        "INT",
        "RESUME_SAME",
        "verified",
    ),
    ("import signal\nos.kill(os.getpid(), signal.SIGILL)", "ILL", "STOP_QUEUE", "failed"),
    ("raise KeyError('its own')", "EXIT1", "FIX_CODE", "failed"),
    ("os.environ['CITIES']", "ENV", "FIX_CONFIG", "failed"),
    (
        "import torch\ntorch.distributed.init_process_group('gloo')",
        "NORANK",
        "FIX_CONFIG",
        "failed",
    ),
    (
        "import subprocess\nsubprocess.run(['git', '-C', '/', 'log'], check=True)",
        "NOGIT",
        "FIX_CODE",
        "failed",
    ),
    (
        """
        import subprocess
        print("epoch 1 step 2 loss 0.3", flush=True)
        sys.exit(subprocess.run(["timeout", "0.1", "sleep", "9"]).returncode)
        """,
        "TIME_LIMIT",
        "TIME_LIMIT",
        "failed",
    ),
    ("sys.exit('please set --data to a folder')", "U27", "FIX_CONFIG", "failed"),
    ("import signal\nos.kill(os.getpid(), signal.SIGFPE)", "FPE", "FIX_CODE", "failed"),
    (
        """
        import torch
        try:
            torch.empty(1 << 46)
        except RuntimeError as error:
            raise ValueError("the training failed") from error
        """,
        "HOSTMEM",
        "OUT_OF_MEMORY",
        "failed",
    ),
    (
        """
        import logging
        try:
            open("/no/such/cache")
        except OSError:
            logging.exception("could not read the cache")
        for step in range(5):
            print(f"step {step} loss 0.3", flush=True)
        {}["width"]
        """,
        "EXIT1",
        "FIX_CODE",
        "failed",
    ),
    (
        """
        import torch

        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, index):
                return {}["image"]

        list(torch.utils.data.DataLoader(Data(), num_workers=1))
        """,
        "EXIT1",
        "FIX_CODE",
        "failed",
    ),
    (
        """
        import zipfile
        (out / "x.zip").write_bytes(b"PK, and no more")
        zipfile.ZipFile(out / "x.zip")
        """,
        "BADFILE",
        "FIX_DATA",
        "failed",
    ),
    (
        """
        (out / "x.csv").write_bytes("na\u00efve".encode("latin-1"))
        (out / "x.csv").read_text("utf-8")
        """,
        "BADFILE",
        "FIX_DATA",
        "failed",
    ),
    (
        """
        import torch
        torch.distributions.Normal(torch.tensor([float("nan")]), 1.0)
        """,
        "NAN",
        "RESUME_SAME",
        "verified",
    ),
    ("(out / ('x' * 300)).touch()", "PATH", "FIX_CONFIG", "failed"),
]


@pytest.mark.parametrize(("fails", "id", "course", "state"), OF_ONE_PROCESS)
def test_what_ends_a_process_is_named_and_the_right_thing_follows(
    make_run, fails: str, id: str, course: str, state: str
) -> None:
    end = end_of(make_run, fails)
    assert (end.failure, end.course, end.state) == (id, course, state), end


def test_a_port_that_is_taken_is_tried_again(make_run) -> None:
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
def test_what_a_hub_answers_decides(make_run, hub: str, fetch: str, answers: str) -> None:
    id, course = ANSWERS[answers]
    end = end_of(make_run, fetch.format(url=f"{hub}/{answers}"))
    is_waited_for = course == "WAIT_NETWORK"
    assert (end.course, end.state) == (course, "verified" if is_waited_for else "failed"), end
    assert end.failure in (id, "RESET"), end


def test_a_name_that_cannot_be_looked_up_is_waited_for(make_run) -> None:
    end = end_of(make_run, "import requests\nrequests.get('https://hub.invalid/', timeout=5)")
    assert (end.failure, end.course, end.state) == ("DNS", "WAIT_NETWORK", "verified"), end


@pytest.mark.skipif(os.geteuid() != 0, reason="a network without a way out needs root")
def test_a_box_without_a_network_is_waited_for(make_run, tmp_path: Path) -> None:
    python = tmp_path / "python-without-network"
    python.write_text(f'#!/bin/sh\nexec unshare -n {sys.executable} "$@"\n')
    python.chmod(0o755)
    fails = "import requests\nrequests.get('http://10.1.2.3/', timeout=5)"
    end = end_of(make_run, fails, training_python=str(python))
    assert (end.failure, end.course, end.state) == ("NET", "WAIT_NETWORK", "verified"), end
