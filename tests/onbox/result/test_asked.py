from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from plans import make_plan

from boxcar.shared.cell.cell_line import CellLine, parse
from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.machine.place import Place
from onbox.result.asked import Asked, of_cell

TEXT = "lr: 0.1  # größer\n".encode()


def asked(root: Path, text: str, sha256: str | None, **plan: Any) -> Asked:
    place = SimpleNamespace(
        plan=make_plan(**plan),
        durable=DurablePaths(root / "tier", "digits"),
        scratch=ScratchPaths(root, "digits"),
    )
    return of_cell(cast(Place, place), line(text), root, sha256)


def line(text: str) -> CellLine:
    return parse(text.encode(), 0, 1)


def config_of(root: Path, data: bytes, sha256: str | None = None) -> str | None:
    (root / "a.yaml").write_bytes(data)
    return asked(root, "a.yaml t 3", sha256 or digest.of_bytes(data)).config


def test_a_result_says_its_configs_text(tmp_path: Path) -> None:
    assert config_of(tmp_path, TEXT) == TEXT.decode()


@pytest.mark.parametrize("data", [b"\xff\xfe", b"x" * (64 * 1024 + 1)])
def test_what_is_no_text_or_no_page_is_left_out(tmp_path: Path, data: bytes) -> None:
    assert config_of(tmp_path, data) is None


def test_a_config_that_was_changed_since_is_not_what_was_asked(tmp_path: Path) -> None:
    assert config_of(tmp_path, TEXT, "0" * 64) is None


def test_without_a_config_there_is_no_text(tmp_path: Path) -> None:
    found = asked(tmp_path, "- t name=a lr=1", None, command=("t.py", "{name}"))
    assert found.config is None and found.words == ("t.py", "a", "lr=1")


def test_a_config_that_is_gone_costs_only_its_text(tmp_path: Path) -> None:
    found = asked(tmp_path, "a.yaml t", "0" * 64)
    assert found.config is None and found.saying


def test_a_config_outside_the_code_is_never_opened(tmp_path: Path) -> None:
    odd = CellLine(0, 1, "a", "../a.yaml", "t", 3)
    place = SimpleNamespace(
        plan=make_plan(),
        durable=DurablePaths(tmp_path, "digits"),
        scratch=ScratchPaths(tmp_path, "digits"),
    )
    with pytest.raises(DamagedError):
        of_cell(cast(Place, place), odd, tmp_path, "0" * 64)


def test_the_words_are_those_of_a_first_start(tmp_path: Path) -> None:
    plan: dict[str, Any] = {"command": ("t.py", "{resume}"), "resume_args": ("-r", "x")}
    out = ScratchPaths(tmp_path, "digits").out("a")
    found = asked(tmp_path, "a.yaml t name=a lr=1", None, resume="last.pt", **plan)
    assert found.words == ("t.py", f"{out}/last.pt", "lr=1")
    pattern = asked(tmp_path, "a.yaml t name=a lr=1", None, resume="step_*.pt", **plan)
    assert pattern.words == ("t.py", "", "lr=1")


def test_the_folder_of_a_cell_before_is_among_the_words(tmp_path: Path) -> None:
    found = asked(tmp_path, "a.yaml t after=x", None, command=("t.py", "{after}"))
    assert found.words == ("t.py", str(DurablePaths(tmp_path / "tier", "digits").cell("x")))
