from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from boxcar.laptop.tryout.one_try import log_essence, own_names

TRACEBACK = """\
10:{second}: loading
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 3, in <module>
[rank0]: FileNotFoundError: no {folder}/out/x for {name} at 0x7f{second}0ab
"""


def cell(name: str, *overrides: str) -> Any:
    return SimpleNamespace(name=name, cfg=f"configs/{name}.yaml", overrides=overrides)


NAMES = own_names([cell("a"), cell("b"), cell("recon_lr1e-3")])


def of(name: str, second: int, text: str = TRACEBACK) -> str:
    folder = Path("/p/.boxcar/smoke/r/cells", name)
    lines = text.format(name=name, second=second, folder=folder).splitlines()
    return log_essence(lines, folder, NAMES)


def test_the_same_failure_of_two_cells_is_one() -> None:
    assert of("a", 11) == of("b", 57) == of("recon_lr1e-3", 30)
    assert "line 3" in of("a", 11)


def test_another_place_or_another_reason_is_another_failure() -> None:
    assert of("a", 11) != of("a", 11, TRACEBACK.replace("line 3", "line 4"))
    assert of("a", 11) != of("a", 11, TRACEBACK.replace("no {folder}", "bad {folder}"))


def test_an_override_that_a_script_refuses_is_one_failure_whatever_its_value() -> None:
    cells = [cell("a", "--wrong=2", "--lr", "0.1"), cell("b", "--wrong=3", "--lr", "0.01")]
    cells.append(cell("c", "tag=two words"))
    names = own_names(cells)

    def said(*words: str) -> str:
        lines = ["usage: train.py [-h]", f"error: unrecognized arguments: {' '.join(words)}"]
        return log_essence(lines, Path("/x"), names)

    assert said("--wrong=2") == said("--wrong=3") != said("--other=2")
    assert said("--lr", "0.1") == said("--lr", "0.01") != said("--wrong=2")
    assert said("tag=two words").endswith("tag={}")


def test_without_a_traceback_the_last_line_tells() -> None:
    usage = "usage: train.py {name} [-h]\n{second} s\ntrain.py: error: unrecognized: --x {name}\n\n"
    assert of("a", 1, usage) == of("b", 2, usage) == "train.py: error: unrecognized: --x {}"
    assert log_essence([], Path("/x"), NAMES) == ""


def test_a_cells_name_that_is_a_word_of_the_message_makes_no_two_failures_of_one() -> None:
    text = "Error: not a word of configs/{name}.yaml, {name}.yaml or {name}\n"
    assert of("a", 1, text) == of("b", 1, text) == "Error: not {} word of {}, {} or {}"


def test_a_name_in_the_middle_of_a_word_is_left() -> None:
    assert of("a", 1, "KeyError: bar-a_b\n") == "KeyError: bar-a_b"
