"""One byte that is not as it was published: verify names the file, and the gate stays shut."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from living import kill_all
from proof import assert_pulled
from tiny_project import TinyProject, make_project

CELLS = ["a", "b"]
# What was pulled, and the word by which a person finds it.
PULLED = {
    "cells/b/metrics.json": "b: metrics.json",
    "cells/a/a.log": "a: a.log",
    # Its own digest tells, unless the flip has made it no JSON at all.
    # What is flipped may be a letter, or what makes it JSON or a manifest.
    "cells/a/manifest.json": "a: was published again|cells/a/manifest.json: ",
    "cells/b/receipt.json": "receipt.json",
    "journal/q1.jsonl": "q1.jsonl",
}


@dataclass(frozen=True)
class Finished:
    """A run of two cells that was pulled and verified; `digest` is what a person would approve."""

    run: TinyProject
    digest: str
    kept: dict[Path, bytes]

    def restore(self) -> None:
        """The results as they were."""
        shutil.rmtree(self.run.results)
        for path, data in self.kept.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


@pytest.fixture(scope="module")
def _finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    lines = [f"configs/{cell}.json one" for cell in CELLS]
    run = make_project(tmp_path_factory.mktemp("flip") / "project", {"q1": lines})
    try:
        for verb in ("launch", "watch", "pull"):
            run.boxcar(verb).ended(0)
        digest = run.boxcar("verify", "--json").ended(0).document["digest"]
        files = (path for path in run.results.rglob("*") if path.is_file())
        yield Finished(run, digest, {path: path.read_bytes() for path in files})
    finally:
        kill_all(run.root)


@pytest.fixture
def finished(_finished: Finished) -> Iterator[Finished]:
    yield _finished
    _finished.restore()


@pytest.mark.parametrize(("name", "word"), PULLED.items(), ids=PULLED)
def test_a_flipped_byte_is_named_and_shuts_the_gate(finished, name, word):
    flip(finished.run.results / name)
    down = finished.run.boxcar("down").ended(1)
    assert any(each in down.err for each in word.split("|")), down
    said = finished.run.boxcar("verify").ended(1)
    assert any(each in said.err for each in word.split("|")), said


def test_a_fresh_pull_makes_it_right_and_no_other_approval_counts(finished):
    run = finished.run
    flip(run.results / "cells/a/model.json")
    broken = run.boxcar("verify", "--json").ended(1).document["digest"]
    assert broken != finished.digest, (
        "what approves the whole results would approve the broken ones"
    )
    for approval in (broken, finished.digest):
        assert "a: model.json has SHA-256" in run.boxcar("down", "--approve", approval).ended(1).err
    assert "a: model.json has SHA-256" in run.boxcar("down", typed="tiny").ended(1).err
    run.boxcar("pull").ended(0)
    assert_pulled(run, CELLS)
    # The receipt still speaks of the broken file, which was never loaded.
    assert "a: model.json was not loaded: boxcar verify" in run.boxcar("down").ended(1).err
    run.boxcar("verify").ended(0)
    refused = run.boxcar("down", "--approve", broken).ended(1)
    assert "approves other results" in refused.err and run.tier.exists()


def test_a_file_that_is_missing_or_too_long_is_named_too(finished):
    run = finished.run
    (run.results / "cells/a/model.json").unlink()
    with (run.results / "cells/b/model.json").open("ab") as file:
        file.write(b"\n")
    said = run.boxcar("verify", "--json").ended(1).document
    missing = {cell["cell"]: cell["missing"][0]["what"] for cell in said["cells"]}
    assert missing["a"] == "model.json is missing"
    assert missing["b"].startswith("model.json is ") and "expected" in missing["b"]
    pulled = run.boxcar("pull", "--json").ended(0).document
    assert [cell["state"] for cell in pulled["cells"]] == ["pulled", "pulled"]
    # What gave way is kept, for whoever wants to know what happened to it.
    assert all(Path(cell["replaced"]).is_dir() for cell in pulled["cells"])
    run.boxcar("verify").ended(0)


def test_a_byte_that_was_flipped_on_the_tier_is_not_pulled(finished):
    run = finished.run
    file = run.tier / "cells/b/model.json"
    kept = file.read_bytes()
    flip(file)
    (run.results / "cells/b/model.json").unlink()
    said = run.boxcar("pull").ended(1)
    file.write_bytes(kept)
    assert "b was not pulled" in said.err and "model.json has SHA-256" in said.err
    assert not (run.results / "cells/b/model.json").exists()


def flip(path: Path) -> None:
    """One bit, in the middle of the file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)
