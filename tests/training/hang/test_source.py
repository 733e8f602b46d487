from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from boxcar.training.hang import stacks

SCRIPT = textwrap.dedent("""\
    def train(loader, rank):
        for epoch in range(3):
            for x in loader:
                if x is None:
                    break
                for y in x:
                    break
                loss = step(x)
                if math.isnan(loss):
                    return
            if rank == 0 and epoch:
                save()
            else:
                wait()
        if ready:
            done()

    def inner():
        if is_main:
            def later():
                barrier()
""")


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return str(path)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (8, ("loss = step(x)", (3, 10), None, (5, 10))),
        (12, ("save()", (2, 14), (11, "if rank == 0 and epoch:"), (10,))),
        (14, ("wait()", (2, 14), (11, "else of if rank == 0 and epoch:"), (10,))),
        (10, ("return", (3, 10), (9, "if math.isnan(loss):"), (5, 10))),
        # Its test is the same on all ranks.
        (16, ("done()", None, None, ())),
        # Who calls an inner function is not seen from where it is written.
        (21, ("barrier()", None, None, ())),
        (99, ("", None, None, ())),
    ],
)
def test_what_the_source_says_around_a_line(
    script: str, line: int, expected: tuple[object, ...]
) -> None:
    assert stacks.look_around(script, line) == expected


@pytest.mark.parametrize("content", [None, "def broken(:\n    pass\n", "\0"])
def test_a_file_that_cannot_be_read_gives_the_little_there_is(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "gone.py"
    if content is not None:
        path.write_text(content)
    assert stacks.look_around(str(path), 1).loop is None
