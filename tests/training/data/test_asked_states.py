"""Who asks for a generator's state is counted, in a process of its own: it stays so."""

from __future__ import annotations

import inspect
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from boxcar.training.data import generators
from boxcar.training.data.asked_states import ASKED

ROOT = Path(__file__).parents[3]
ASKS = {
    "initial_seed": torch.initial_seed,
    "get_rng_state": torch.get_rng_state,
    "getstate": random.getstate,
    "get_state": numpy.random.get_state,
}


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (torch, "initial_seed"),
        (torch.random, "initial_seed"),
        (torch, "get_rng_state"),
        (torch.random, "get_rng_state"),
        (torch.random, "fork_rng"),
        (random, "getstate"),
        (numpy.random, "get_state"),
    ],
)
def test_who_asks_for_a_state_is_counted_and_gets_it(where: Any, name: str) -> None:
    ASKED.begin()
    before = ASKED.count
    with generators.own_draws():
        generators.seed(1)
        before = ASKED.count
        found = getattr(where, name)()
        if name == "fork_rng":
            with found:
                torch.rand(())
        assert ASKED.count == before + 1
        if name == "initial_seed":
            assert found == 1
        torch.rand(()), random.random(), numpy.random.rand()
        assert ASKED.count == before + 1


def test_they_look_and_are_pickled_as_before() -> None:
    ASKED.begin()
    assert pickle.loads(pickle.dumps(torch.initial_seed)) is torch.initial_seed
    assert torch.initial_seed is torch.random.initial_seed is not ASKS["initial_seed"]
    assert inspect.signature(torch.initial_seed) == inspect.signature(ASKS["initial_seed"])


IMPORTS = {
    "from torch import initial_seed": True,
    "from torch.random import get_rng_state": True,
    "from random import getstate": True,
    "from numpy.random import get_state": True,
    "import torch, random, numpy.random": False,
    "from torch.random import fork_rng": False,  # which asks by the name that is counted
    "initial_seed = None": False,
}


@pytest.mark.parametrize("line", IMPORTS)
def test_who_has_imported_such_a_function_by_its_name_is_noticed(line: str, tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(f"{line}\n")
    asks = "from boxcar.training.data.asked_states import ASKED; ASKED.begin()"
    says = "print(ASKED.may_be_unseen)"
    said = subprocess.run(
        [
            *(sys.executable, "-c"),
            f"import sys; sys.path += {[str(tmp_path)]}; import theirs; {asks}; {says}",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == str(IMPORTS[line])


def test_who_imports_it_later_gets_the_one_that_counts() -> None:
    ASKED.begin()
    from random import getstate

    before = ASKED.count
    getstate()
    assert ASKED.count == before + 1
