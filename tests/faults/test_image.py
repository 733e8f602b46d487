"""The Dockerfile, built for real above a bare Debian, and a run inside what came out.

Needs buildah and debootstrap, a real root, and Debian's packages; skips with the reason otherwise.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from container import ENTRYPOINT, Container, a_container
from tiny_project import TinyProject, make_project

pytestmark = pytest.mark.faults
ROOT = Path(__file__).resolve().parents[2]
BUILD_S = 900.0
BASE, BOX = "localhost/base", "localhost/box"
# Its Python is the base's own, as a profile for an image names it.
PROFILE = """\
name: image
extends: local
env: {agent_python: /usr/bin/python3, training_python: /usr/bin/python3}
"""


@dataclass(frozen=True)
class Buildah:
    """An image store of the test's own. vfs and chroot work where an engine's ways are closed."""

    store: Path

    def __call__(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0, f"buildah {' '.join(words)}: {done.stderr[-3000:]}"
        return done.stdout.strip()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["buildah", "--root", str(self.store / "root"), "--storage-driver", "vfs"]
        command += ["--runroot", str(self.store / "run"), *words]
        return subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | {"BUILDAH_ISOLATION": "chroot"},
            capture_output=True,
            text=True,
            timeout=BUILD_S,
            check=False,
        )

    def build(self, *words: str) -> subprocess.CompletedProcess[str]:
        # Layers: what one instruction removes again must not lie in the layer of another.
        options = ("--network", "host", "--layers", "--file", "Dockerfile")
        return self.run("bud", *options, *words, ".")


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    """With the base and the box built."""
    if os.geteuid() != 0 or platform.system() != "Linux":
        pytest.skip("an image is built here by a real root on Linux")
    if missing := [tool for tool in ("buildah", "debootstrap") if not shutil.which(tool)]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("image")
    made = Buildah(folder / "store")
    _build_base(made, folder / "base")
    done = made.build("--build-arg", f"BASE={BASE}", "--tag", BOX)
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    yield made
    made("rm", "--all")
    made("rmi", "--all", "--force")


def _build_base(buildah: Buildah, root: Path) -> None:
    words = ["debootstrap", "--variant=minbase", "bookworm", str(root)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=BUILD_S, check=False)
    if done.returncode != 0:
        pytest.skip(f"no Debian for a base: {(done.stdout + done.stderr)[-500:]}")
    container = buildah("from", "scratch")
    buildah("copy", "--quiet", container, str(root), "/")
    # What a base may bring: a command that would end the box, and another account.
    buildah("config", "--cmd", "/bin/bash", "--user", "nobody", container)
    buildah("commit", "--quiet", "--rm", container, BASE)
    shutil.rmtree(root)


@pytest.fixture
def container(buildah: Buildah, tmp_path: Path) -> Iterator[Container]:
    """One of the box's image, not started yet."""
    working = buildah("from", BOX)
    with a_container(Path(buildah("mount", working)), tmp_path / "container") as made:
        yield made
    buildah("rm", working)


def test_the_image_starts_its_entry_point_and_nothing_of_the_base(buildah):
    config = json.loads(buildah("inspect", "--type", "image", BOX))["OCIv1"]["config"]
    assert config["Entrypoint"] == [ENTRYPOINT]
    assert not config.get("Cmd")
    assert config["User"] == "root"
    assert [name.split("=")[0] for name in config.get("Env", [])] in ([], ["PATH"])


def test_no_layer_holds_a_key_or_a_part_of_boxcar(buildah, tmp_path):
    buildah("push", "--quiet", BOX, f"dir:{tmp_path}")
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    layers = [tmp_path / layer["digest"].removeprefix("sha256:") for layer in manifest["layers"]]
    names = [name for layer in layers for name in _files(layer)]
    assert len(layers) >= 3
    assert "usr/sbin/sshd" in names
    assert not [name for name in names if "ssh_host_" in name or "authorized_keys" in name]
    ours = [name for name in names if "boxcar" in name]
    assert sorted(ours) == ["etc/ssh/sshd_config.d/boxcar.conf", "usr/local/bin/boxcar-box"]


def _files(layer: Path) -> list[str]:
    with tarfile.open(layer) as archive:
        files = [member for member in archive if member.isfile()]
        for file in files:
            opened = archive.extractfile(file)
            assert opened and b"PRIVATE KEY-----" not in opened.read(100), file.name
        return [file.name.removeprefix("./") for file in files]


def test_without_a_base_nothing_is_built(buildah):
    assert buildah.build().returncode != 0


def test_a_base_with_an_old_python_is_refused(buildah, tmp_path):
    old = buildah("from", BASE)
    fake = tmp_path / "old.pth"
    fake.write_text("import sys; sys.version_info = (3, 8, 10)\n")
    buildah("copy", old, str(fake), "/usr/lib/python3/dist-packages/old.pth")
    buildah("commit", "--quiet", "--rm", old, "localhost/old")
    done = buildah.build("--build-arg", "BASE=localhost/old")
    assert done.returncode != 0
    assert "the base has Python 3.8; expected >= 3.10" in done.stdout + done.stderr


def test_a_run_goes_on_in_a_container_that_was_stopped_and_started(container, tmp_path):
    laptop = make_project(tmp_path / "project", {"queue": ["configs/a.json x 6"]})
    laptop.hold("a", at=3)
    box = _push(laptop, container)
    data_dir = str(laptop.local / "boxes/box-a")
    container.start(BOXCAR_DATA_DIR=data_dir)
    container.wait_for_ssh()
    assert _ask(container, data_dir, _start_of(box, laptop, data_dir))["by"] == "tmux"
    latest = box.out("box-a", "a") / "latest.json"
    container.wait_for("step 3", lambda: latest.exists() and '{"step": 3}' in latest.read_text())
    container.stop()
    assert box.types("queue", "a")[-1] == "cell.preempted"
    assert box.types("queue")[-1] == "agent.stopped"
    box.let_go("a")
    container.start(BOXCAR_DATA_DIR=data_dir)
    container.wait_for("the cell", lambda: "cell.verified" in box.types("queue", "a"))
    assert "queue: started again (tmux)" in container.log
    assert box.types("queue", "a").count("cell.started") == 2
    assert json.loads((box.tier / "cells/a/model.json").read_text())["steps"] == 6


def _push(laptop: TinyProject, container: Container) -> TinyProject:
    """The release, sent by a laptop to which the container's disk is the tier; the box's view."""
    profiles = laptop.root / "profiles"
    profiles.mkdir()
    (profiles / "image.yaml").write_text(PROFILE)
    laptop.boxcar("push", "--profile", "image").ended(0)
    shutil.copytree(laptop.local, container.seen(laptop.local))
    box = replace(laptop, seen=container.seen("/"))
    home = container.seen(laptop.local / "boxes/box-a/boxcar")
    home.mkdir(parents=True, exist_ok=True)
    (archive,) = box.tier.glob("releases/*/onbox-*.pyz")
    shutil.copy(archive, home)
    return box


def _start_of(box: TinyProject, laptop: TinyProject, data_dir: str) -> dict[str, Any]:
    (digest,) = box.releases
    return {
        "ask": "start",
        "run": box.run,
        "durable_dir": str(laptop.local / "durable"),
        "data_dir": data_dir,
        "queue": "queue",
        "digest": digest,
        "start_index": 0,
        "detach": ["tmux", "setsid"],
    }


def _ask(container: Container, data_dir: str, request: dict[str, Any]) -> dict[str, Any]:
    """As the laptop asks the archive on the box, over ssh."""
    command = f"python3 -I -S {data_dir}/boxcar/onbox-*.pyz answer"
    done = container.ssh(command, typed=json.dumps(request))
    mark = "BOXCAR-ANSWER "
    told = [line for line in done.stdout.splitlines() if line.startswith(mark)]
    assert len(told) == 1, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(told[0].removeprefix(mark))
    return found
