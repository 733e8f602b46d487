"""The solvers of examples/pde converge as their texts say, and their data sets can be had again."""

from __future__ import annotations

import importlib
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")

CODE = Path(__file__).parents[2] / "examples" / "pde"
Import = Callable[[str], ModuleType]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def module() -> Iterator[Import]:
    """Import one of the example's modules; their plain names are gone again for the other tests."""
    sys.path.insert(0, str(CODE))
    yield importlib.import_module
    sys.path.remove(str(CODE))
    for name in [name for name in sys.modules if name.split(".")[0] in ("solvers", "generate")]:
        sys.modules.pop(name)


def orders(errors: list[float]) -> list[float]:
    """The order of convergence between each error and the next, which has half the step."""
    return [math.log2(coarse / fine) for coarse, fine in itertools.pairwise(errors)]


def rms(difference: torch.Tensor) -> float:
    return float(difference.square().mean().sqrt())


def problems(equation: ModuleType, count: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.stack([equation.draw(generator) for _ in range(count)])


def test_advection_is_of_third_order_against_the_translated_sines(module: Import) -> None:
    advection1d = module("solvers.advection1d")
    drawn = problems(advection1d, 6)
    assert {float(speed) > 0 for speed in drawn[:, 0]} == {True, False}
    errors = []
    for cells in (64, 128, 256):
        start, end = (advection1d.exact(drawn, time, cells) for time in (0.0, 1.0))
        errors.append(rms(advection1d.solve(start, drawn[:, 0], 1.0) - end))
    assert all(2.85 < order < 3.1 for order in orders(errors)), orders(errors)


def test_advection_keeps_the_mean(module: Import) -> None:
    advection1d = module("solvers.advection1d")
    start = torch.rand(3, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    end = advection1d.solve(start, torch.tensor([0.5, -1.0, 0.1], dtype=torch.float64), 0.3)
    torch.testing.assert_close(end.mean(1), start.mean(1), rtol=0, atol=1e-14)


def test_the_exact_cell_averages_are_those_of_a_fine_sampling(module: Import) -> None:
    advection1d = module("solvers.advection1d")
    drawn = problems(advection1d, 3)
    fine = advection1d.exact(drawn, 0.3, 4096).unflatten(1, (16, 256)).mean(2)
    torch.testing.assert_close(advection1d.exact(drawn, 0.3, 16), fine, rtol=0, atol=1e-13)


def test_burgers_is_of_fourth_order_in_time_against_cole_and_hopf(module: Import) -> None:
    burgers1d = module("solvers.burgers1d")
    start = burgers1d.initial(problems(burgers1d, 2), 256)
    viscosity = torch.full((2,), 0.05, dtype=torch.float64)
    exact = torch.stack([burgers1d.cole_hopf(u, 0.05, 0.5) for u in start])
    errors = [rms(burgers1d.solve(start, viscosity, 0.5, steps) - exact) for steps in (25, 50, 100)]
    assert all(3.7 < order < 4.3 for order in orders(errors)), orders(errors)


def test_burgers_converges_faster_than_any_order_in_space(module: Import) -> None:
    burgers1d = module("solvers.burgers1d")
    start = burgers1d.initial(problems(burgers1d, 4), 1024)
    viscosity = torch.full((4,), 0.01, dtype=torch.float64)
    exact = torch.stack([burgers1d.cole_hopf(u, 0.01, 0.5) for u in start])
    errors = []
    for points in (32, 64, 128):
        coarse, every = start[:, :: 1024 // points], 1024 // points
        end = burgers1d.solve(coarse, viscosity, 0.5, burgers1d.steps_for(start, 0.5))
        errors.append(rms(end - exact[:, ::every]))
    first, second = orders(errors)
    assert first > 4 and second > first + 4, orders(errors)


def test_burgers_keeps_the_mean_and_loses_energy(module: Import) -> None:
    burgers1d = module("solvers.burgers1d")
    start = burgers1d.initial(problems(burgers1d, 3), 128) + 0.3
    viscosity = torch.full((3,), 0.005, dtype=torch.float64)
    end = burgers1d.solve(start, viscosity, 1.0, 200)
    torch.testing.assert_close(end.mean(1), start.mean(1), rtol=0, atol=1e-12)
    assert bool((end.square().mean(1) < start.square().mean(1)).all())


def test_burgers_without_viscosity_keeps_the_energy_of_what_it_resolves(module: Import) -> None:
    burgers1d = module("solvers.burgers1d")
    modes = torch.randn(2, 11, dtype=torch.complex128, generator=torch.Generator().manual_seed(0))
    start = torch.fft.irfft(modes * (torch.arange(11) > 0), n=33) * 3
    end = burgers1d.solve(start, torch.zeros(2, dtype=torch.float64), 0.05, 100)
    # Aliasing would feed it.
    torch.testing.assert_close(end.square().mean(1), start.square().mean(1), rtol=1e-6, atol=0)
    assert rms(end - start) > 0.1 * rms(start)


def smooth_flow(n: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Permeability, source and solution at the centres; the source by automatic differentiation."""
    x = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    x, y = (axis.clone().requires_grad_() for axis in torch.meshgrid(x, x, indexing="ij"))
    a = (torch.sin(2 * x) * torch.cos(3 * y)).exp()
    u = torch.sin(math.pi * x) * torch.sin(2 * math.pi * y)
    u_x, u_y = torch.autograd.grad(u.sum(), (x, y), create_graph=True)
    [flow_x] = torch.autograd.grad((a * u_x).sum(), x, retain_graph=True)
    [flow_y] = torch.autograd.grad((a * u_y).sum(), y)
    return a.detach(), -(flow_x + flow_y), u.detach()


def layered_flow(n: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Two layers that meet in the middle; u and what flows across are continuous there."""
    x = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    x, y = torch.meshgrid(x, x, indexing="ij")
    a = torch.where(x < 0.5, 1.0, 9.0).to(torch.float64)
    wave = torch.sin(2 * math.pi * x) * torch.sin(math.pi * y)
    return a, 5 * math.pi**2 * wave, wave / a


@pytest.mark.parametrize("flow", [smooth_flow, layered_flow])
@pytest.mark.parametrize("is_turned", [False, True])
def test_darcy_is_of_second_order_against_a_known_solution(
    module: Import, flow: Callable[[int], tuple[torch.Tensor, ...]], is_turned: bool
) -> None:
    darcy2d = module("solvers.darcy2d")
    errors = []
    for n in (16, 32, 64):
        a, f, u = (field.mT if is_turned else field for field in flow(n))
        errors.append(float((darcy2d.solve(a[None], f[None])[0] - u).abs().max()))
    assert all(1.9 < order < 2.1 for order in orders(errors)), orders(errors)


def test_darcy_leaves_no_residual_and_its_iterations_do_not_grow(
    module: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    darcy2d = module("solvers.darcy2d")
    monkeypatch.setattr(darcy2d, "MOST_ITERATIONS", 30)
    drawn = problems(darcy2d, 3)
    for n in (16, 64):
        a = darcy2d.medium(drawn, n)
        f = torch.ones_like(a)
        u = darcy2d.solve(a, f)
        assert rms(darcy2d.apply(darcy2d.transmissibilities(a), u) - f) < 1e-9


def test_darcy_says_so_where_it_cannot_be_solved(module: Import) -> None:
    darcy2d = module("solvers.darcy2d")
    a = -torch.ones(1, 8, 8, dtype=torch.float64)
    with pytest.raises(ArithmeticError, match="is a positive"):
        darcy2d.solve(a, torch.ones_like(a))


SMALL = ("--samples", "16", "--resolution", "24")


def test_each_task_and_split_is_written_and_loads_without_trusting_it(
    module: Import, tmp_path: Path
) -> None:
    assert module("generate").main([*SMALL, "--out", str(tmp_path)]) == 0
    tasks = {"burgers1d": (2, 24), "advection1d": (2, 24), "darcy2d": (1, 24, 24)}
    for task, shape in tasks.items():
        for split, count in {"train": 16, "val": 2, "test": 2}.items():
            data = torch.load(tmp_path / f"{task}_{split}.pt", weights_only=True)
            assert data["inputs"].shape == (count, *shape)
            assert data["targets"].shape == (count, 1, *shape[1:])
            assert data["inputs"].dtype == data["targets"].dtype == torch.float32
            assert bool(data["targets"].isfinite().all()) and data["task"] == task
    assert len(list(tmp_path.iterdir())) == 9


def test_the_same_command_gives_the_same_bytes_and_another_seed_others(
    module: Import, tmp_path: Path
) -> None:
    words = ["--task", "burgers1d", *SMALL]
    for folder, seed in (("one", "0"), ("two", "0"), ("three", "1")):
        module("generate").main([*words, "--seed", seed, "--out", str(tmp_path / folder)])
    one, two, three = (tmp_path / name / "burgers1d_train.pt" for name in ("one", "two", "three"))
    assert one.read_bytes() == two.read_bytes()
    inputs = [torch.load(path, weights_only=True)["inputs"] for path in (one, three)]
    assert not bool((inputs[0] == inputs[1]).any())


def test_no_two_samples_are_the_same_and_more_of_them_keep_the_problems(
    module: Import, tmp_path: Path
) -> None:
    generate = module("generate")
    for count in ("8", "40"):
        words = ["--task", "advection1d", "--samples", count, "--resolution", "16"]
        generate.main([*words, "--out", str(tmp_path / count)])
    few, many, val = (
        torch.load(tmp_path / name, weights_only=True)["inputs"]
        for name in ("8/advection1d_train.pt", "40/advection1d_train.pt", "40/advection1d_val.pt")
    )
    torch.testing.assert_close(many[:8], few)
    assert len(torch.cat([many, val]).unique(dim=0)) == 45


def test_what_is_there_is_left_and_what_is_something_else_is_replaced(
    module: Import, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--task", "darcy2d", "--samples", "8", "--out", str(tmp_path)]
    path = tmp_path / "darcy2d_train.pt"
    module("generate").main([*words, "--resolution", "8"])
    inode = path.stat().st_ino
    module("generate").main([*words, "--resolution", "8"])
    assert path.stat().st_ino == inode and f"{path}: is there" in capsys.readouterr().err
    module("generate").main([*words, "--resolution", "12"])
    assert torch.load(path, weights_only=True)["inputs"].shape == (8, 1, 12, 12)
    path.write_bytes(path.read_bytes()[:500])
    module("generate").main([*words, "--resolution", "12"])
    assert torch.load(path, weights_only=True)["inputs"].shape == (8, 1, 12, 12)
