from __future__ import annotations

import unicodedata
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from plans import make_plan

from boxcar.shared.cell import said
from boxcar.shared.cell.cell_line import CellLine, parse
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.plan import Rule
from boxcar.shared.files.release import Code, Release
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.machine.place import Place
from onbox.queue.release_lines import ReleaseLines

NFD = unicodedata.normalize("NFD", "ü.yaml")


def line(text: str) -> CellLine:
    return parse(text.encode(), 0, 1)


def lines(root: Path, *configs: str, **plan: Any) -> ReleaseLines:
    """Of a release with these configs; each has another digest."""
    records = tuple(FileRecord(f"code/{name}", 1, str(at) * 64) for at, name in enumerate(configs))
    found = Release("digits", "o.pyz", "t.zip", Code(None, False), records)
    place = SimpleNamespace(
        plan=make_plan(**{"command": ("t.py", "{cfg}"), "env": {}} | plan),
        durable=DurablePaths(root / "tier", "digits"),
        scratch=ScratchPaths(root / "box", "digits"),
        release=Path("/tier/releases/rel"),
    )
    return ReleaseLines(cast(Place, place), found)


def test_a_line_whose_config_is_there_can_be_run(tmp_path: Path) -> None:
    found = lines(tmp_path, "a.yaml")
    assert found.has_config(line("./a.yaml t")) and found.problem(line("./a.yaml t")) is None
    assert not found.has_config(line("b.yaml t"))
    assert "b.yaml is in no release: push it" in str(found.problem(line("b.yaml t")))


def test_a_line_without_a_config_is_for_every_release(tmp_path: Path) -> None:
    found = lines(tmp_path, command=("t.py",))
    assert found.has_config(line("- t")) and found.problem(line("- t")) is None
    assert found.as_stored(line("- t")) == line("- t")
    assert found.saying(line("- t"))


def test_the_config_is_opened_by_the_name_that_it_is_stored_by(tmp_path: Path) -> None:
    found = lines(tmp_path, NFD)
    assert found.as_stored(line("ü.yaml t")).cfg == NFD
    assert found.said(line("ü.yaml t")).words == ("t.py", NFD)


def test_of_two_files_of_one_spelling_none_is_chosen(tmp_path: Path) -> None:
    found = lines(tmp_path, NFD, "ü.yaml")
    assert "is two files of this release" in str(found.problem(line("ü.yaml t")))
    assert found.saying(line("ü.yaml t")) is None


@pytest.mark.parametrize(
    ("text", "plan", "expected"),
    [
        ("- t", {}, "the command takes {cfg}"),
        ("a.yaml t env.K=1", {"secrets": ("K",)}, "K is one of the secrets"),
        (
            "a.yaml t",
            {"rules": (Rule("a*", nproc=1), Rule("*a", nproc=2))},
            "one nproc_per_node by",
        ),
    ],
)
def test_a_line_that_was_appended_since_is_judged_as_plan_would(
    tmp_path: Path, text: str, plan: dict[str, Any], expected: str
) -> None:
    assert expected in str(lines(tmp_path, "a.yaml", **plan).problem(line(text)))


def test_what_it_says_is_of_the_configs_bytes_in_this_release(tmp_path: Path) -> None:
    found = lines(tmp_path, "x.yaml", "a.yaml")
    asked = line("a.yaml t lr=1")
    assert found.saying(asked) == said.saying_of(make_plan(), asked, "1" * 64)
    assert found.saying(line("b.yaml t")) is None
    assert found.asked(asked).saying == found.saying(asked)


def test_resume_args_are_said_once_there_is_a_checkpoint(tmp_path: Path) -> None:
    found = lines(tmp_path, "a.yaml", resume="last.pt", resume_args=("-r", "{resume}"))
    out = tmp_path / "box/boxcar/digits/cells/a/out"
    before = found.said(line("a.yaml t"))
    assert (before.words, before.resume) == (("t.py", "a.yaml"), f"{out}/last.pt")
    out.mkdir(parents=True)
    (out / "last.pt").write_bytes(b"1")
    after = found.said(line("a.yaml t"))
    assert after.words == ("t.py", "a.yaml", "-r", f"{out}/last.pt")
    assert found.asked(line("a.yaml t")).words == ("t.py", "a.yaml")


def test_a_pattern_stands_for_its_newest_match_and_else_for_nothing(tmp_path: Path) -> None:
    found = lines(tmp_path, "a.yaml", resume="step_*.pt", resume_args=("-r", "{resume}"))
    out = tmp_path / "box/boxcar/digits/cells/a/out"
    out.mkdir(parents=True)
    assert found.said(line("a.yaml t")).resume == ""
    for step in (9, 10):
        (out / f"step_{step}.pt").write_bytes(b"1")
    said = found.said(line("a.yaml t"))
    assert said.resume == f"{out}/step_10.pt" and said.words[-1] == said.resume
