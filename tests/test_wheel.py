"""What `pip install` gets: each module, and all that is shipped to a box or copied for a person."""

from __future__ import annotations

import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

import boxcar

wheel_builders = pytest.importorskip("hatchling.builders.wheel")
hatch_build = pytest.importorskip("hatch_build")

ROOT = Path(__file__).resolve().parents[1]
ASSETS = ("onbox", "profiles", "queues", "templates", "examples/digits", "examples/pde")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    [path] = wheel_builders.WheelBuilder(str(ROOT)).build(
        directory=str(folder), versions=["standard"]
    )
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked sdist."""
    builders = pytest.importorskip("hatchling.builders.sdist")
    folder = tmp_path_factory.mktemp("sdist")
    [path] = builders.SdistBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    with tarfile.open(path) as archive:
        archive.extractall(folder)
    return Path(path.removesuffix(".tar.gz"))


def metadata_of(wheel: zipfile.ZipFile) -> str:
    [name] = [name for name in wheel.namelist() if name.endswith("/METADATA")]
    return wheel.read(name).decode()


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


def test_it_holds_the_pages_that_messages_name(wheel: zipfile.ZipFile) -> None:
    held = {name for name in wheel.namelist() if name.startswith("boxcar/assets/docs/")}
    assert held == {
        f"boxcar/assets/{name}" for name in tracked("docs/*.md") if name.count("/") == 1
    }
    named = {
        page
        for path in (ROOT / "boxcar").rglob("*.py")
        for page in re.findall(r'"explain", \("--about", "([a-z]+)"\)', path.read_text("utf-8"))
    }
    assert {"notify", "reliability"} <= named
    assert {f"boxcar/assets/docs/{page}.md" for page in named} <= held


def test_it_holds_the_licence_and_names_it(wheel: zipfile.ZipFile) -> None:
    text = metadata_of(wheel)
    assert "License-Expression: MIT" in text
    assert [name for name in wheel.namelist() if name.endswith("licenses/LICENSE")]
    assert re.search(r"Author: The Boxcar authors", text)


def test_it_installs_the_program_boxcar(wheel: zipfile.ZipFile) -> None:
    [points] = [name for name in wheel.namelist() if name.endswith("/entry_points.txt")]
    assert "boxcar = boxcar.cli:program.run" in wheel.read(points).decode()


def test_its_version_is_the_one_of_the_package(wheel: zipfile.ZipFile) -> None:
    assert f"\nVersion: {boxcar.__version__}\n" in metadata_of(wheel)


def test_the_sdist_holds_the_checkout_and_makes_the_same_wheel(
    wheel: zipfile.ZipFile, source: Path, tmp_path: Path
) -> None:
    assert [
        name for name in tracked("tests", "docs", "bench") if not (source / name).exists()
    ] == []
    [path] = wheel_builders.WheelBuilder(str(source)).build(
        directory=str(tmp_path), versions=["standard"]
    )
    again = zipfile.ZipFile(path)
    made = {name: wheel.read(name) for name in wheel.namelist()}
    assert made == {name: again.read(name) for name in again.namelist()}


def test_on_an_index_each_link_of_the_readme_leads_to_this_version() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert hatch_build.RELATIVE.search(text)
    on_index = hatch_build.readme_for_index(text, "https://host/us/it/", "1.2.3")
    assert not hatch_build.RELATIVE.search(on_index)
    assert "](https://host/us/it/blob/v1.2.3/docs/verbs.md)" in on_index
    assert "](https://host/us/it/raw/v1.2.3/docs/pictures/board.svg)" in on_index
    assert not re.search(r"<(img|source)", text)  # these would need the same


def test_without_an_address_the_readme_stays_as_it_is() -> None:
    assert hatch_build.readme_for_index("[a](b.md)", "", "1.2.3") == "[a](b.md)"
