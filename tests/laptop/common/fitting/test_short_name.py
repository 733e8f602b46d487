from __future__ import annotations

import pytest
from rich.cells import cell_len

from boxcar.shared.text_width import short_name


def test_a_name_is_shortened_in_its_middle_and_keeps_how_it_ends() -> None:
    name = "recon_skip_connection_q1_seed3"
    assert short_name(name, 18, "…") == "recon_…on_q1_seed3"
    assert short_name(name, 30, "…") == name


@pytest.mark.parametrize("name", ["recon_no_skip_connection_q1_seed3", "数据集_消融实验_种子三"])
def test_it_is_never_wider_than_its_room(name: str) -> None:
    for room in range(40):
        assert cell_len(short_name(name, room, "…")) <= room


def test_of_a_path_its_end_is_shown() -> None:
    assert short_name("/home/me/work/sweep/job.yaml", 16, "…") == "…/sweep/job.yaml"
