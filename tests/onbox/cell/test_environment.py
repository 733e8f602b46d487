from __future__ import annotations

import pytest

from onbox.cell.environment import of_launcher
from onbox.machine import credentials_path


def of(**given: dict[str, str]) -> dict[str, str]:
    box, own, secrets = (given.get(name, {}) for name in ("box", "own", "secrets"))
    return of_launcher(box, own, secrets, ["/rel/training.zip", "/code"])


def test_a_cells_own_comes_over_the_boxs_and_the_secrets_over_both() -> None:
    everywhere = dict.fromkeys("ABC", "box")
    found = of(box=everywhere, own=dict.fromkeys("BC", "own"), secrets={"C": "secret"})
    assert (found["A"], found["B"], found["C"]) == ("box", "own", "secret")


@pytest.mark.parametrize("where", ["box", "own"])
def test_of_the_file_with_the_secrets_nobody_hears(where: str) -> None:
    assert credentials_path.VARIABLE not in of(
        **{where: {credentials_path.VARIABLE: "/root/c.json"}}
    )


def test_what_boxcar_needs_is_found_before_what_the_cell_has() -> None:
    assert of()["PYTHONPATH"] == "/rel/training.zip:/code"
    assert of(box={"PYTHONPATH": "/b"})["PYTHONPATH"] == "/rel/training.zip:/code:/b"
    found = of(box={"PYTHONPATH": "/b"}, own={"PYTHONPATH": "/o:/p"})
    assert found["PYTHONPATH"] == "/rel/training.zip:/code:/o:/p"


def test_an_empty_python_path_adds_no_working_folder() -> None:
    assert of(box={"PYTHONPATH": ""})["PYTHONPATH"] == "/rel/training.zip:/code"
    assert of_launcher({}, {}, {}, [])["PYTHONPATH"] == ""


def test_what_a_script_prints_is_seen_at_once() -> None:
    assert of(own={"PYTHONUNBUFFERED": ""})["PYTHONUNBUFFERED"] == "1"


def test_the_boxs_own_environment_stays_as_it_is() -> None:
    box = {"A": "1", credentials_path.VARIABLE: "/c"}
    of(box=box, own={"A": "2"})
    assert box == {"A": "1", credentials_path.VARIABLE: "/c"}
