"""What the whole run would cost on an offer: by its own cells, on the same GPUs, else not known."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from plans import make_plan

from boxcar.laptop.project.queues.cell_cost import Sample
from boxcar.laptop.providers.provider import Offer
from boxcar.laptop.run.run_price import Timed, price_on, timed_cells
from boxcar.shared.files.plan import Cell, Plan

A_RUN = Path(__file__).parents[2] / "data" / "v1-run" / "project" / "results" / "tiny"


def plan(**own: object) -> Plan:
    """Four cells of ten epochs."""
    cells = (Cell(n, f"{n}.yaml", "seg", 10, "queue_1", i, None) for i, n in enumerate("abcd"))
    return make_plan(cells=tuple(cells), **own)


def offer(gpu: str = "RTX 4090", gpus: int = 1, rate: float = 0.5) -> Offer:
    return Offer("vastai", "1", gpu, gpus, rate)


def timed(*seconds: float, gpu: str = "NVIDIA GeForce RTX 4090", gpus: int = 1) -> list[Timed]:
    """Finished cells of ten epochs."""
    return [
        Timed(Sample(f"x{i}", "seg", 10, one, "box-a"), gpu, gpus) for i, one in enumerate(seconds)
    ]


def test_four_cells_of_an_hour_at_half_a_dollar_are_two_dollars() -> None:
    price = price_on(offer(), plan(), timed(3600, 3600, 3600))
    assert price and (price.low, price.high, price.samples) == (2.0, 2.0, 3)


def test_it_is_a_range_by_the_quickest_and_the_slowest() -> None:
    price = price_on(offer(), plan(), timed(1800, 3600, 5400))
    assert price and (price.low, price.high) == (1.0, 3.0)


def test_of_fewer_than_three_cells_it_is_half_to_twice() -> None:
    price = price_on(offer(), plan(), timed(3600))
    assert price and (price.low, price.high, price.samples) == (1.0, 4.0, 1)


@pytest.mark.parametrize(
    "there", [offer("RTX 4080"), offer("RTX 4090D"), offer("RTX 3090"), offer(gpus=2)]
)
def test_another_card_or_another_number_of_them_is_not_known(there: Offer) -> None:
    assert price_on(there, plan(), timed(3600, 3600, 3600)) is None


def test_nothing_timed_is_not_known() -> None:
    assert price_on(offer(), plan(), []) is None


def test_cells_with_gpus_of_their_own_share_the_box() -> None:
    price = price_on(offer(gpus=4, rate=2.0), plan(gpus_per_cell=1), timed(3600, 3600, 3600))
    assert price and price.high == 2.0


def test_the_gpus_are_those_of_the_manifest_and_one_that_shared_them_counts_not(
    tmp_path: Path,
) -> None:
    results = tmp_path / "results" / "tiny"
    shutil.copytree(A_RUN, results)
    assert timed_cells(tmp_path, pytest.fail) == [], "that version kept no GPUs"
    path = sorted(results.glob("cells/*/manifest.json"))[0]
    document = json.loads(path.read_text())
    on = {"gpus": [{"name": "NVIDIA A100-SXM4-80GB"}], "beside": 0}
    path.write_text(json.dumps(document | {"trained_on": on}))
    [one] = timed_cells(tmp_path, pytest.fail)
    assert (one.gpu, one.gpus, one.sample.cell) == ("NVIDIA A100-SXM4-80GB", 1, path.parent.name)
    path.write_text(json.dumps(document | {"trained_on": on | {"beside": 1}}))
    assert timed_cells(tmp_path, pytest.fail) == []
