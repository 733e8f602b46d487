from __future__ import annotations

import math
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fsdp_on_cpu import fully_shard, needs_fsdp_on_cpu
from ranks_at_work import run_ranks
from torch import Tensor, nn
from waiting import LIMIT_S

from boxcar.shared.errors import DivergedError, InputError
from boxcar.training import torch_private
from boxcar.training.checkpoint.checkpointer import Checkpointer
from boxcar.training.checkpoint.training_state import TrainingState
from boxcar.training.parallel import accumulate
from boxcar.training.parallel.accumulate import GradientAccumulator
from boxcar.training.parallel.ddp import DDPWrapper
from boxcar.training.ranks import ranks
from boxcar.training.ranks.config import DistributedConfig


def linear() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(3, 1)


def batches(count: int, size: int = 2) -> list[Tensor]:
    return list(torch.randn(count, size, 3, generator=torch.Generator().manual_seed(1)))


def loss_of(model: nn.Module, batch: Tensor) -> Tensor:
    return model(batch).square().mean()


class Recorder(torch.optim.SGD):
    """Keeps the gradients of each step."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model.parameters(), lr=0.1)
        self.seen: list[Tensor] = []

    def step(self, closure: Any = None) -> None:
        parameters = self.param_groups[0]["params"]
        self.seen.append(torch.cat([p.grad.flatten().clone() for p in parameters]))
        super().step(closure)


def run(accumulator: GradientAccumulator, given: list[Tensor], first: int = 0) -> list[Tensor]:
    model = linear()
    optimizer = Recorder(model)
    for index, batch in enumerate(given, first):
        is_last = index - first + 1 == len(given)
        with accumulator.micro_step(model, index, is_last):
            accumulator.step(loss_of(model, batch), optimizer, index)
    return optimizer.seen


def test_a_window_is_the_mean_of_its_micro_batches() -> None:
    (accumulated,) = run(GradientAccumulator(4), batches(4))
    (whole,) = run(GradientAccumulator(1), [torch.cat(batches(4))])
    torch.testing.assert_close(accumulated, whole)


def test_a_short_last_window_is_the_mean_of_what_it_has() -> None:
    given = batches(6)
    long, short = run(GradientAccumulator(4), given)
    by_hand_long, by_hand_short = run(
        GradientAccumulator(1), [torch.cat(given[:4]), torch.cat(given[4:])]
    )
    torch.testing.assert_close(long, by_hand_long)
    torch.testing.assert_close(short, by_hand_short)


def test_windows_are_counted_from_where_one_began() -> None:
    """After a short window, and after a resume, step_idx is no multiple of the window any more."""
    accumulator = GradientAccumulator(4)
    assert len(run(accumulator, batches(6))) == 2
    assert len(run(accumulator, batches(8), first=6)) == 2


def test_step_tells_when_the_window_closed() -> None:
    model, accumulator = linear(), GradientAccumulator(2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    stepped = [
        accumulator.step(loss_of(model, batch), optimizer, i) for i, batch in enumerate(batches(5))
    ]
    assert stepped == [False, True, False, True, False]


def test_an_epoch_that_ends_inside_a_window_must_say_so() -> None:
    model, accumulator = linear(), GradientAccumulator(4)
    with accumulator.micro_step(model, 9):
        accumulator.step(loss_of(model, batches(1)[0]), Recorder(model), 9)
    with (
        pytest.raises(InputError, match="from 9 back to 0 inside a window of 4: give is_last=True"),
        accumulator.micro_step(model, 0),
    ):
        pass


def test_gradients_are_clipped_after_averaging_and_the_norm_is_kept() -> None:
    plain = GradientAccumulator(2, clip_norm=math.inf)
    (true,) = run(plain, batches(2))
    accumulator = GradientAccumulator(2, clip_norm=0.01)
    (clipped,) = run(accumulator, batches(2))
    assert plain.grad_norm == accumulator.grad_norm == pytest.approx(float(true.norm()))
    assert float(clipped.norm()) == pytest.approx(0.01, rel=1e-3)


def test_the_scaler_is_taken_out_before_clipping() -> None:
    plain, scaler = GradientAccumulator(2, clip_norm=0.1), torch.amp.GradScaler("cpu")
    scaled = GradientAccumulator(2, scaler, clip_norm=0.1)
    for a, b in zip(run(plain, batches(5)), run(scaled, batches(5)), strict=True):
        torch.testing.assert_close(a, b)
    assert scaler.state_dict()["_growth_tracker"] == 3  # one update for each window


def test_an_overflow_is_left_to_the_scaler() -> None:
    """The loss is finite, its scaled gradient is not: the scaler skips and halves its scale."""
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    accumulator = GradientAccumulator(2, scaler, clip_norm=1.0)
    assert run(accumulator, [batch * 1e3 for batch in batches(2)]) == []
    assert not math.isfinite(accumulator.grad_norm)
    assert scaler.get_scale() == 2.0**126


# --- a step that the GPU takes or leaves out while the host waits


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What is computed here counts as if it were on a GPU; for each step, whether it was bad."""
    found: list[bool] = []

    def step_unless(is_bad: Tensor, optimizer: Any) -> None:
        found.append(bool(is_bad))
        torch_private.step_unless(is_bad, optimizer)

    seen = SimpleNamespace(
        step_unless=step_unless, takes_step_unless=torch_private.takes_step_unless
    )
    monkeypatch.setattr(accumulate, "torch_private", seen)
    monkeypatch.setattr(accumulate, "_is_under_way", lambda norm: True)
    return found


def fused(model: nn.Module) -> torch.optim.AdamW:
    return torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)


def trained(given: list[Tensor], accumulator: GradientAccumulator) -> list[Tensor]:
    """The weights after each micro-batch."""
    model, weights = linear(), []
    optimizer = fused(model)
    for index, batch in enumerate(given):
        accumulator.step(loss_of(model, batch), optimizer, index)
        weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    return weights


@pytest.mark.parametrize("clip_norm", [None, 0.1])
def test_a_step_that_the_gpu_judges_is_the_same_to_the_bit(
    clip_norm: float | None, request: pytest.FixtureRequest
) -> None:
    waited_for, ahead = (GradientAccumulator(2, clip_norm=clip_norm) for _ in range(2))
    before = trained(batches(6), waited_for)
    asked = request.getfixturevalue("asked")
    after = trained(batches(6), ahead)
    assert asked == [False] * 3
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert ahead.grad_norm == waited_for.grad_norm or clip_norm is None


@pytest.mark.parametrize("clip_norm", [None, 0.1])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("good", [0, 2])
def test_a_step_that_is_not_finite_is_left_out_and_told_at_once(
    good: int, bad: float, clip_norm: float | None, asked: list[bool]
) -> None:
    model, accumulator = linear(), GradientAccumulator(1, clip_norm=clip_norm)
    optimizer = fused(model)
    for index, batch in enumerate(batches(good)):
        accumulator.step(loss_of(model, batch), optimizer, index)
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(DivergedError, match=f"rank 0 is not finite in the window of .* {good} to"):
        accumulator.step(loss_of(model, torch.full((2, 3), bad)), optimizer, good)
    assert asked == [False] * good + [True]
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), before, strict=True))
    assert [int(each["step"]) for each in optimizer.state.values()] == [good, good]
    assert math.isnan(accumulator.grad_norm) or clip_norm


def test_what_cannot_leave_out_a_step_is_waited_for_as_before(asked: list[bool]) -> None:
    for scaler in (None, torch.amp.GradScaler("cpu")):
        model = linear()
        plain = torch.optim.AdamW(model.parameters(), fused=False)
        optimizer = plain if scaler is None else fused(model)
        accumulator = GradientAccumulator(1, scaler)
        accumulator.step(loss_of(model, batches(1)[0]), optimizer, 0)
        assert [int(each["step"]) for each in optimizer.state.values()] == [1, 1]
        with pytest.raises(DivergedError):
            accumulator.step(loss_of(model, torch.full((2, 3), math.nan)), optimizer, 1)
    assert asked == []


def test_only_a_whole_norm_on_a_gpu_is_under_way() -> None:
    for norm, expected in (
        (SimpleNamespace(is_cuda=True), True),
        (SimpleNamespace(is_cuda=True, full_tensor=None), False),  # FSDP's: it is a collective
        (SimpleNamespace(is_cuda=False), False),
    ):
        assert accumulate._is_under_way(norm) is expected  # type: ignore[arg-type]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_leaves_out_a_step_that_is_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    model, accumulator = linear().cuda(), GradientAccumulator(1, clip_norm=1.0)
    optimizer = fused(model)
    monkeypatch.setattr(accumulate, "_number", None)  # it is not waited for before the step
    accumulator.step(loss_of(model, batches(1)[0].cuda()), optimizer, 0)
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(
        DivergedError, match="rank 0 is not finite in the window of step_idx 1 to 1"
    ):
        accumulator.step(loss_of(model, torch.full((2, 3), math.nan).cuda()), optimizer, 1)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), before, strict=True))


def test_an_optimizer_without_gradients_is_told_before_the_scaler_fails() -> None:
    for scaler in (None, torch.amp.GradScaler("cpu")):
        with pytest.raises(InputError, match="no parameter of the optimizer got a gradient"):
            GradientAccumulator(1, scaler).step(
                loss_of(linear(), batches(1)[0]), Recorder(linear()), 0
            )


def test_a_loss_whose_backward_was_run_already_is_told() -> None:
    """torch's own advice, retain_graph=True, would count each gradient twice."""
    model = linear()
    loss = loss_of(model, batches(1)[0])
    loss.backward()  # type: ignore[no-untyped-call]
    with pytest.raises(InputError, match=r"take loss\.backward\(\) out of the loop"):
        GradientAccumulator(1).step(loss, Recorder(model), 0)


def test_a_gradient_that_overflows_alone_is_told_apart_from_the_loss() -> None:
    model = linear()
    with pytest.raises(DivergedError, match="though every loss is:"):
        # The derivative of sqrt at 0.
        GradientAccumulator(1).step((model.weight * 0).sum().sqrt(), Recorder(model), 0)


def test_a_nan_is_seen_where_all_parameters_are_large() -> None:
    model = nn.Linear(100, 100, bias=False)
    with pytest.raises(DivergedError, match="loss of rank 0 is not finite"):
        GradientAccumulator(1).step(
            loss_of(model, torch.full((2, 100), math.nan)), Recorder(model), 0
        )


@pytest.mark.parametrize("wrong", [{"accumulation_steps": 0}, {"clip_norm": 0.0}])
def test_wrong_settings_are_told(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(wrong))} should be"):
        GradientAccumulator(**{"accumulation_steps": 1} | wrong)


def test_the_effective_batch_counts_ranks_and_windows() -> None:
    assert GradientAccumulator(4).effective_batch_size(8, 2) == 64


KINDS = ["ddp", pytest.param("fsdp", marks=needs_fsdp_on_cpu)]


def wrap(kind: str, config: DistributedConfig) -> nn.Module:
    model = linear()
    return DDPWrapper(model, config).setup() if kind == "ddp" else fully_shard(model) or model


def exchanges(kind: str) -> list[bool]:
    """Of DDP whether each backward exchanged, of FSDP whether it stepped; then whether both ranks
    end equal."""
    config = DistributedConfig(sync_batchnorm=False)
    here = ranks.join(config)
    model = wrap(kind, config)
    optimizer, accumulator = torch.optim.SGD(model.parameters(), 0.1), GradientAccumulator(3)
    found = []
    for index, batch in enumerate(batches(4)):
        with accumulator.micro_step(model, index, is_last=index == 3):
            loss = loss_of(model, batch * (here.rank + 1))
            before = getattr(model, "require_backward_grad_sync", None)
            stepped = accumulator.step(loss, optimizer, index)
        found.append(stepped if before is None else before)
    total = sum(float(p.detach().sum()) for p in _whole(model))
    return [*found, not ranks.agree_any(total != ranks.all_reduce_metrics({"t": total})["t"])]


def _whole(model: nn.Module) -> list[Tensor]:
    return [p.full_tensor() if hasattr(p, "full_tensor") else p for p in model.parameters()]


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_exchange_at_the_end_of_a_window_alone(kind: str) -> None:
    assert run_ranks(2, exchanges, kind) == [[False, False, True, True, True]] * 2


def end_of_two(kind: str) -> tuple[Tensor, float]:
    config = DistributedConfig()
    here = ranks.join(config)
    model = wrap(kind, config)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    accumulator = GradientAccumulator(2, clip_norm=0.2)
    for index, batch in enumerate(batches(5, size=4)):
        with accumulator.micro_step(model, index, is_last=index == 4):
            loss = loss_of(model, batch[here.rank :: here.world])
            accumulator.step(loss, optimizer, index)
    return torch.cat([p.detach().flatten() for p in _whole(model)]), accumulator.grad_norm


@pytest.mark.parametrize("kind", KINDS)
def test_accumulation_and_clipping_on_two_ranks_equal_one(kind: str) -> None:
    model, accumulator = linear(), GradientAccumulator(2, clip_norm=0.2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for index, batch in enumerate(batches(5, size=4)):
        with accumulator.micro_step(model, index, is_last=index == 4):
            accumulator.step(loss_of(model, batch), optimizer, index)
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    for end, norm in run_ranks(2, end_of_two, kind):
        torch.testing.assert_close(end, weights)
        assert norm == pytest.approx(accumulator.grad_norm, rel=1e-5)


def diverge(scaler: bool) -> tuple[str, bool]:
    config = DistributedConfig(timeout_s=LIMIT_S)
    here = ranks.join(config)
    model = DDPWrapper(linear(), config).setup()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    accumulator = GradientAccumulator(3, torch.amp.GradScaler("cpu") if scaler else None)
    with pytest.raises(DivergedError) as caught:
        for index, batch in enumerate(batches(3)):
            bad = math.nan if (here.rank, index) == (1, 1) else 1.0
            with accumulator.micro_step(model, index):
                accumulator.step(loss_of(model, batch * bad), optimizer, index)
    is_whole = all(bool(p.isfinite().all()) for p in model.parameters())
    ranks.leave()
    return str(caught.value), is_whole


@pytest.mark.parametrize("scaler", [False, True], ids=["plain", "scaler"])
def test_a_nan_on_one_rank_stops_all_of_them_before_the_step(scaler: bool) -> None:
    (first, first_whole), (second, second_whole) = run_ranks(2, diverge, scaler)
    assert first_whole and second_whole
    for said in (first, second):
        assert "the loss of rank 1 is not finite in the window of step_idx 0 to 2" in said
    assert "here it is nan at step_idx 1" in second and "here it is" not in first


def test_divergence_has_the_exit_code_that_is_not_tried_again() -> None:
    assert DivergedError("").exit_code == 42


# --- looked at seldom


def test_what_is_looked_at_seldom_trains_to_the_bit_as_what_is_looked_at_always() -> None:
    always = run(GradientAccumulator(2, clip_norm=0.1), batches(12))
    seldom = run(GradientAccumulator(2, clip_norm=0.1, check_finite="every 10"), batches(12))
    assert all(map(torch.equal, always, seldom))


def steps_until_told(every: str, bad_at: int, count: int = 60) -> int:
    model, accumulator = linear(), GradientAccumulator(1, check_finite=every)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for index, batch in enumerate(batches(count)):
        try:
            with accumulator.micro_step(model, index):
                loss = loss_of(model, batch * (math.nan if index == bad_at else 1))
                accumulator.step(loss, optimizer, index)
        except DivergedError as error:
            assert "a loss was not finite" in str(error)
            return index
    raise AssertionError("nothing was told")


def test_on_the_cpu_every_tenth_window_tells_of_the_ones_before_it() -> None:
    assert steps_until_told("every 10", bad_at=3) == 9
    assert steps_until_told("every 10", bad_at=9) == 9
    assert steps_until_told("every 10", bad_at=10) == 19


def test_nothing_is_saved_after_a_number_that_nobody_has_read(tmp_path: Any) -> None:
    model, accumulator = linear(), GradientAccumulator(1, check_finite="every 1000")
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    checkpointer = Checkpointer(tmp_path, TrainingState(model=model, optimizer=optimizer))
    checkpointer.save()
    accumulator.step(loss_of(model, batches(1)[0] * math.inf), optimizer, 0)
    for save in (checkpointer.save, checkpointer.save_async, lambda: checkpointer.save_best(1.0)):
        with pytest.raises(DivergedError, match="no checkpoint was written since"):
            save()
        accumulator.step(loss_of(model, batches(1)[0] * math.inf), optimizer, 0)
    checkpointer.wait()
    assert [path.name for path in tmp_path.glob("*.pth")] == ["latest.pth"]
    with pytest.raises(DivergedError):
        ranks.leave()
    ranks.leave()  # it is told once


ENDS = """
import torch
from boxcar.training import GradientAccumulator
model = torch.nn.Linear(2, 1)
accumulator = GradientAccumulator(1, check_finite="every 1000")
loss = model(torch.full((1, 2), float("nan"))).sum()
accumulator.step(loss, torch.optim.SGD(model.parameters(), 0.1), 0)
"""


def test_a_training_that_ends_with_an_unread_number_ends_with_42(tmp_path: Any) -> None:
    words = [sys.executable, "-c", ENDS]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 42
    assert "a loss was not finite at one of step_idx 0 to 0" in ended.stderr


def diverge_seldom(bad_rank: int) -> str:
    here = ranks.join()
    model = DDPWrapper(linear(), DistributedConfig()).setup()
    accumulator = GradientAccumulator(1, check_finite="every 3")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for index, batch in enumerate(batches(6)):
        factor = math.nan if here.rank == bad_rank and index == 1 else 1.0
        try:
            with accumulator.micro_step(model, index):
                accumulator.step(loss_of(model, batch * factor), optimizer, index)
        except DivergedError as error:
            return f"{index}: {str(error).split(' was')[0]}"
    return "nothing"


def test_all_ranks_are_told_at_the_same_window() -> None:
    first, second = run_ranks(2, diverge_seldom, 1)
    assert (first[0], second[0]) == ("2", "2")
    assert "a loss" in second


@pytest.mark.parametrize("said", ["never", "every 0", "10", "every ten"])
def test_another_word_for_how_often_is_refused(said: str) -> None:
    with pytest.raises(InputError, match="'every step' or, say, 'every 10', found"):
        GradientAccumulator(1, check_finite=said)


# --- loops that say less, or have an engine


def test_the_documents_loop_needs_no_micro_step_on_one_rank(
    capfd: pytest.CaptureFixture[str],
) -> None:
    model, accumulator = linear(), GradientAccumulator(accumulation_steps=2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    assert [
        accumulator.step(loss_of(model, b), optimizer, i) for i, b in enumerate(batches(2))
    ] == [
        False,
        True,
    ]
    assert "micro_step" not in capfd.readouterr().err


def forget_micro_step(is_forgotten: bool) -> list[float]:
    here = ranks.join()
    model = DDPWrapper(linear(), DistributedConfig()).setup()
    accumulator = GradientAccumulator(2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for index, batch in enumerate(batches(4)):
        inside = nullcontext() if is_forgotten else accumulator.micro_step(model, index)
        with inside:
            accumulator.step(loss_of(model, batch[here.rank :][:1]), optimizer, index)
    sys.stderr.flush()
    said = Path(f"/proc/self/fd/{sys.stderr.fileno()}").read_text().count("outside of micro_step")
    return [said, *model.module.weight.flatten().tolist()]


def test_on_several_ranks_a_forgotten_micro_step_is_said_once_and_trains_alike() -> None:
    told, right = (run_ranks(2, forget_micro_step, word)[0] for word in (True, False))
    assert (told[0], right[0]) == (1, 0)
    assert told[1:] == pytest.approx(right[1:])


class Engine(nn.Module):
    """What DeepSpeed's engine has and does, as its documentation says, with accumulation over 2."""

    def __init__(self) -> None:
        super().__init__()
        self.model, self.calls, self.global_steps = linear(), list[str](), 0

    def forward(self, batch: Tensor) -> Tensor:
        return self.model(batch)

    def is_gradient_accumulation_boundary(self) -> bool:
        return self.calls.count("backward") % 2 == 1

    def backward(self, loss: Tensor) -> None:
        self.calls.append("backward")
        (loss / 2).backward()

    def step(self) -> None:
        self.calls.append("step")


def test_an_engine_does_its_own_backward_and_step() -> None:
    engine, accumulator = Engine(), GradientAccumulator(1)
    optimizer = Recorder(engine.model)
    stepped = []
    for index, batch in enumerate(batches(4)):
        with accumulator.micro_step(engine, index):
            stepped.append(accumulator.step(loss_of(engine, batch), optimizer, index))
    assert engine.calls == ["backward", "step"] * 4
    assert stepped == [False, True, False, True]
    assert not optimizer.seen  # nobody steps beside it
    with (
        pytest.raises(DivergedError, match="the loss of rank 0 is not finite"),
        accumulator.micro_step(engine, 4),
    ):
        accumulator.step(loss_of(engine, batches(1)[0] * math.nan), optimizer, 4)


@pytest.mark.parametrize("options", [{"accumulation_steps": 2}, {"clip_norm": 1.0}])
def test_what_an_engine_does_already_is_not_done_twice(options: dict[str, Any]) -> None:
    accumulator = GradientAccumulator(**{"accumulation_steps": 1} | options)
    engine = Engine()
    with (
        pytest.raises(InputError, match="by its JSON: write GradientAccumulator"),
        accumulator.micro_step(engine, 0),
    ):
        accumulator.step(loss_of(engine, batches(1)[0]), Recorder(engine.model), 0)
    assert engine.calls == []
