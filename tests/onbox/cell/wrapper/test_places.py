from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.cell.wrapper.places import Durable, Scratch

FOLDERS = st.lists(st.sampled_from(["/", "//", "a", ".", "..", "b c", "//x/"]), max_size=6)


@given(FOLDERS)
def test_its_paths_are_those_that_everybody_else_has(parts: list[str]) -> None:
    folder = "/" + "".join(parts) + "/end"
    lean, full = Scratch(folder, "run"), ScratchPaths(Path(folder), "run")
    assert lean.root == str(full.root)
    for name in ("cell", "out", "log", "running"):
        assert getattr(lean, name)("c") == str(getattr(full, name)("c"))
    assert lean.done("c", 3) == str(full.done("c", 3))
    tier = Durable(folder, "run")
    assert tier.manifest("c") == str(DurablePaths(Path(folder), "run").manifest("c"))
