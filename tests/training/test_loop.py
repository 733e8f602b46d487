"""The one door: what a loop may do with it, and the mistakes that it answers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from ranks_at_work import RanksFailed, run_ranks
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from boxcar.shared.errors import DivergedError, InputError
from boxcar.training import DistributedConfig, Training
from boxcar.training.ranks import ranks

DATA = TensorDataset(torch.arange(22.0).reshape(22, 1))


@pytest.fixture(autouse=True)
def _leave() -> Iterator[None]:
    yield
    ranks.leave()


def begin(out: Path, **options: Any) -> Training:
    torch.manual_seed(0)
    training = Training(out, **options)
    model = training.wrap(nn.Linear(1, 1))
    training.optimizer = torch.optim.SGD(model.parameters(), 1e-4)  # type: ignore[attr-defined]
    training.batches(DATA, batch_size=4)
    training.resume(optimizer=training.optimizer)  # type: ignore[attr-defined]
    return training


def seen(training: Training, epochs: int, until: int = 999) -> list[list[float]]:
    found = []
    assert training.loader is not None
    for _ in training.epochs(epochs):
        for (numbers,) in training.loader:
            found.append(numbers.flatten().tolist())
            training.step(loss=float(numbers.mean()))
            if training.state.step == until:
                return found
    training.finish()
    return found


def test_a_loop_that_breaks_off_takes_up_the_next_epoch_at_its_beginning(tmp_path: Path) -> None:
    training = begin(tmp_path)
    assert training.loader is not None
    numbers = []
    for epoch in training.epochs(3):
        for step, _ in enumerate(training.loader):
            training.step()
            if step == 1:
                break
        numbers.append((epoch, training.state.step, training.loader.epoch))
    assert numbers == [(0, 2, 0), (1, 4, 1), (2, 6, 2)]


def test_a_save_that_is_asked_for_after_the_batches_is_of_the_epochs_end(tmp_path: Path) -> None:
    training = begin(tmp_path / "one")
    assert training.loader is not None
    after: list[int] = []
    for epoch in training.epochs(1):
        for _ in training.loader:
            training.step()
        training.save()
        after.append(epoch)  # what a body does behind it is done when it is saved
    training.checkpointer.wait()
    ranks.leave()
    again = begin(tmp_path / "one")
    assert (again.state.epoch, again.state.step) == (1, 6)
    assert list(again.epochs(1)) == []


def test_a_save_in_a_step_is_of_the_steps_end(tmp_path: Path) -> None:
    training = begin(tmp_path)
    for number in training.steps(3):
        if number == 2:
            training.save()
        training.step()
    training.checkpointer.wait()
    names = [path.name for path in sorted((tmp_path / "checkpoints").glob("*.pth"))]
    assert names == ["step_00000003.pth"]


def test_what_was_finished_is_not_saved_again(tmp_path: Path) -> None:
    first = seen(begin(tmp_path), 2)
    assert len(first) == 12 and len(first[5]) == 2  # the last batch is kept
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "checkpoints").glob("*.pth")}
    assert seen(begin(tmp_path), 2) == []
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert len(list((tmp_path / "checkpoints").glob("*.pth"))) == len(before)


def test_it_goes_on_at_the_next_batch(tmp_path: Path) -> None:
    whole = seen(begin(tmp_path / "whole"), 3)
    first = begin(tmp_path / "left")
    before = seen(first, 3, until=8)
    first.checkpointer.save()
    ranks.leave()
    assert before + seen(begin(tmp_path / "left"), 3) == whole


def by_own_loader(out: Path, until: int = 999) -> list[float]:
    """The weights after each step, with a loader of torch's own, which shuffles."""
    torch.manual_seed(0)
    training = Training(out)
    model = training.wrap(nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    found: list[float] = []
    for _ in training.epochs(4, optimizer=optimizer):
        for (numbers,) in DataLoader(DATA, batch_size=4, shuffle=True):
            optimizer.zero_grad()
            model(numbers).sum().backward()
            optimizer.step()
            found.append(next(model.parameters()).item())
            training.step()
            if training.state.step == until:
                return found
    training.finish()
    return found


def test_an_epoch_of_another_loader_is_saved_at_its_end_and_begun_again(tmp_path: Path) -> None:
    whole = by_own_loader(tmp_path / "whole")
    ranks.leave()
    by_own_loader(tmp_path / "left", until=15)  # a save was due in step 10, of 6 in an epoch
    ranks.leave()
    assert by_own_loader(tmp_path / "left") == whole[12:]


def on_two_ranks(out: str) -> list[list[float]]:
    return seen(begin(Path(out)), 1)


def test_two_ranks_share_the_same_batches(tmp_path: Path) -> None:
    one = seen(begin(tmp_path / "one"), 1)
    shares = run_ranks(2, on_two_ranks, str(tmp_path / "two"))
    assert [a + b for a, b in zip(*shares, strict=True)] == one


def test_a_loss_that_is_no_number_ends_it_before_it_is_saved(tmp_path: Path) -> None:
    training = begin(tmp_path)
    training.step(loss=torch.tensor(1.0))
    with pytest.raises(DivergedError, match="loss of rank 0 is nan at step 2"):
        training.step(loss=math.nan)
    training.step(loss=torch.tensor(math.inf))
    with pytest.raises(DivergedError, match="a loss was not finite"):
        training.finish()
    assert not list(tmp_path.glob("**/*.pth"))


def test_what_is_forgotten_is_told(tmp_path: Path) -> None:
    training = Training(tmp_path)
    with pytest.raises(InputError, match=r"call model = training.wrap\(model\) first"):
        training.resume()
    training.wrap(nn.Linear(1, 1))
    with pytest.raises(InputError, match="a training has one model"):
        training.wrap(nn.Linear(1, 1))
    with pytest.raises(InputError, match="nothing was resumed yet"):
        training.step()
    training.resume()
    with pytest.raises(InputError, match=r"called training.step\(\) 0 times in step 0"):
        list(training.steps(3))


def shared_unequally() -> None:
    Training("nowhere").batches(DATA, batch_size=5)


def test_a_batch_that_the_ranks_cannot_share_is_told() -> None:
    with pytest.raises(RanksFailed, match="batch_size 5 is for all ranks together, and 2 ranks"):
        run_ranks(2, shared_unequally)


def test_other_settings_are_refused(tmp_path: Path) -> None:
    training = begin(tmp_path, settings={"lr": 1.0})
    training.step()
    training.checkpointer.save()
    ranks.leave()
    with pytest.raises(InputError, match=r"lr was 1\.0, is 2\.0"):
        begin(tmp_path, settings={"lr": 2.0}, config=DistributedConfig())


def test_the_loop_resumes_and_saves_by_itself_and_exports_the_bare_weights(tmp_path: Path) -> None:
    for epochs, done in ((1, []), (2, [1])):
        torch.manual_seed(0)
        training = Training(tmp_path)
        model = training.wrap(nn.Linear(1, 1))
        optimizer = torch.optim.SGD(model.parameters(), 1e-4)
        loader = training.batches(DATA, batch_size=4)
        for epoch in training.epochs(epochs, optimizer=optimizer):
            assert epoch in ([0], [1])[len(done)]
            for _ in loader:
                training.step()
        assert (training.state.epoch, training.state.step) == (epochs, 6 * epochs)
        training.export(tmp_path / "net.pth")
        ranks.leave()
    assert set(torch.load(tmp_path / "net.pth", weights_only=True)) == {"weight", "bias"}
    again = begin(tmp_path)
    with pytest.raises(InputError, match=r"scheduler came after training.resume\(\)"):
        list(again.epochs(3, scheduler=None))
