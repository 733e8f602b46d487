"""The words behind `boxcar grid`: Invoke would take a free one for a verb, and run it."""

from __future__ import annotations

import pytest

from boxcar.cli import Door, _tasks


def parsed(*words: str) -> dict[str, object]:
    """The flags that the task would get."""
    door = Door(name="boxcar", namespace=_tasks().namespace)
    door.create_config()
    door.parse_core(["boxcar", "grid", *words])
    door.parse_collection()
    door.parse_tasks()
    [context] = door.tasks
    return {argument.name: argument.value for argument in context.args.values()}


@pytest.mark.parametrize(
    ("words", "cfg", "given"),
    [
        (["c/b.yaml", "lr=1,2", "seed=0..2"], "c/b.yaml", ["lr=1,2", "seed=0..2"]),
        (["c/b.yaml", "lr=1", "plan"], "c/b.yaml", ["lr=1", "plan"]),
        (["plan", "launch"], "plan", ["launch"]),
        (["-", "lr=1"], "-", ["lr=1"]),
        (["c/b.yaml", "--set", "--lr=1,2"], "c/b.yaml", ["--lr=1,2"]),
        (["--task", "x", "c/b.yaml", "--write", "lr=1"], "c/b.yaml", ["lr=1"]),
        (["--task=x", "c/b.yaml", "lr=1"], "c/b.yaml", ["lr=1"]),
        (["c/b.yaml", "a=1", "--", "--lr=1,2", "--amp"], "c/b.yaml",
         ["a=1", "--", "--lr=1,2", "--amp"]),
        (["c/b.yaml", "layers=[1,2]", "t=a b"], "c/b.yaml", ["layers=[1,2]", "t=a b"]),
    ],
)  # fmt: skip
def test_free_words_behind_grid_are_its_own(words: list[str], cfg: str, given: list[str]) -> None:
    found = parsed(*words)
    assert (found["cfg"], found["set"]) == (cfg, given)
    assert found["write"] is ("--write" in words)
    assert found["task"] == ("x" if any(word.startswith("--task") for word in words) else "")
