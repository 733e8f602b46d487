from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from boxcar.training.reporting import soon


@pytest.mark.parametrize("number", [0.5, 3, True])
def test_a_number_is_read_as_it_was_when_it_was_sent(number: float) -> None:
    tensor = torch.tensor(number)
    read = soon.on_its_way(tensor)
    tensor.zero_()
    assert read() == number
    assert read() == number
    assert type(read()) is type(number)


def test_a_number_that_has_a_gradient_holds_no_graph() -> None:
    weight = torch.ones(1, requires_grad=True)
    assert soon.on_its_way(weight.square().sum())() == 1.0


def test_importing_it_imports_no_torch() -> None:
    code = "import sys; import boxcar.training.reporting.soon; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_number_of_a_gpu_is_read_as_it_was_when_it_was_sent() -> None:
    tensor = torch.tensor(0.5, device="cuda")
    read = soon.on_its_way(tensor)
    tensor.zero_()
    assert read() == 0.5
