"""What `pip install` gets: each module, and all that is shipped to a box or copied for a person."""

from __future__ import annotations

import re
import subprocess
import zipfile
from pathlib import Path

import pytest

wheel_builders = pytest.importorskip("hatchling.builders.wheel")

ROOT = Path(__file__).resolve().parents[1]
ASSETS = ("onbox", "profiles", "queues", "templates", "examples/digits", "examples/pde")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    [path] = wheel_builders.WheelBuilder(str(ROOT)).build(
        directory=str(folder), versions=["standard"]
    )
    return zipfile.ZipFile(path)


def tracked(*folders: str) -> set[str]:
    words = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run([*words, "--", *folders], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("no git checkout: what belongs to it is not known")
    names = {name for name in done.stdout.decode().split("\0") if name}
    return {name for name in names if (ROOT / name).exists()}


def test_it_holds_every_module_of_the_package(wheel: zipfile.ZipFile) -> None:
    held = {name for name in wheel.namelist() if not name.startswith("boxcar/assets/")}
    made = {"boxcar/zh.mo", "boxcar/shared/zh.mo"}  # of zh.po, by the build
    assert tracked("boxcar") | made == {name for name in held if name.startswith("boxcar/")}


def test_it_holds_the_agent_the_platforms_and_the_examples(wheel: zipfile.ZipFile) -> None:
    expected = tracked("job.yaml", *ASSETS)
    assert {f"boxcar/assets/{name}" for name in expected} <= set(wheel.namelist())


def test_it_holds_the_licence_and_names_it(wheel: zipfile.ZipFile) -> None:
    [metadata] = [name for name in wheel.namelist() if name.endswith("/METADATA")]
    text = wheel.read(metadata).decode()
    assert "License-Expression: MIT" in text
    assert [name for name in wheel.namelist() if name.endswith("licenses/LICENSE")]
    assert re.search(r"Author: The Boxcar authors", text)


def test_it_installs_the_program_boxcar(wheel: zipfile.ZipFile) -> None:
    [points] = [name for name in wheel.namelist() if name.endswith("/entry_points.txt")]
    assert "boxcar = boxcar.cli:program.run" in wheel.read(points).decode()
