"""The loader as a training loop meets it: epochs, positions, kills, ranks that differ."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from ranks_at_work import RanksFailed, run_ranks
from torch.utils.data import DataLoader, Dataset
from waiting import LIMIT_S

from boxcar.shared.disk.atomic import write_whole
from boxcar.shared.errors import InputError
from boxcar.training import data_order
from boxcar.training.data.loader import RankAwareDataLoader, differing
from boxcar.training.data.sample_seeds import SeededSamples
from boxcar.training.ranks import ranks
from boxcar.training.ranks.config import DistributedConfig


class Noisy(Dataset[Any]):
    """(index, a draw of each generator)."""

    def __init__(self, samples: int = 50) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> Any:
        return index, random.random(), float(numpy.random.rand()), torch.rand(2)


def make(samples: int = 50, **options: Any) -> RankAwareDataLoader:
    usual = {"batch_size": 4, "seed": 3, "uneven": "drop"}
    return RankAwareDataLoader(Noisy(samples), **usual | options)


def plain(batch: Any) -> list[Any]:
    return [part.tolist() for part in batch]


def epochs(loader: RankAwareDataLoader, count: int = 1) -> list[list[Any]]:
    found = [plain(batch) for _ in range(count) for batch in loader]
    loader.close()
    return found


def take(loader: RankAwareDataLoader, count: int) -> list[list[Any]]:
    return [plain(batch) for _, batch in zip(range(count), loader, strict=False)]


@pytest.mark.parametrize("num_workers", [1, 2])
def test_batches_and_draws_do_not_depend_on_the_number_of_workers(num_workers: int) -> None:
    assert epochs(make(num_workers=num_workers), 2) == epochs(make(), 2)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_the_training_draws_the_same_with_and_without_a_loader(num_workers: int) -> None:
    def train(*, reads: bool) -> list[Any]:
        random.seed(1), numpy.random.seed(1), torch.manual_seed(1)
        drawn, loader = [], make(num_workers=num_workers)
        batches = iter(loader) if reads else iter(range(12))
        for _ in batches:
            drawn.append([random.random(), numpy.random.randn(), torch.rand(()).item()])
        loader.close()
        return drawn

    assert train(reads=True) == train(reads=False)


def test_collate_draws_are_seeded_too() -> None:
    options = {"collate_fn": collate_with_mixup}
    assert epochs(make(**options)) == epochs(make(**options, num_workers=2))


def collate_with_mixup(samples: list[Any]) -> Any:
    return torch.tensor([index for index, *_ in samples]), torch.rand(3)


def test_an_epoch_follows_the_other_by_itself() -> None:
    loader = make()
    both = epochs(loader, 2)
    assert loader.epoch == 2 and len(both) == 2 * len(loader) == 24
    assert both[:12] != both[12:]
    explicit = make()
    explicit.set_epoch(1)
    assert epochs(explicit) == both[12:]


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("done", [1, 7, 12, 13])
def test_a_resumed_loop_gets_exactly_the_next_batch(num_workers: int, done: int) -> None:
    whole, killed = epochs(make(), 2), make(num_workers=num_workers)
    batches = (batch for _ in range(2) for batch in killed)
    for _ in range(done):
        next(batches)
    # Plain enough for a checkpoint, and for JSON.
    state = json.loads(json.dumps(killed.state_dict()))
    killed.close()
    resumed, rest = make(num_workers=2 - num_workers), []
    resumed.load_state_dict(state)
    for epoch in range(resumed.epoch, 2):
        resumed.set_epoch(epoch)
        rest += [plain(batch) for batch in resumed]
    resumed.close()
    assert rest == whole[done:]


def test_the_state_is_that_of_the_batch_in_the_loop_not_of_what_workers_read_ahead() -> None:
    loader = make(num_workers=2, prefetch_factor=4)
    assert loader.state_dict()["batches_done"] == 0
    for number, _ in enumerate(loader, 1):
        state = loader.state_dict()
        assert (state["epoch"], state["batches_done"]) == (0, number)
    state = loader.state_dict()
    assert (state["epoch"], state["batches_done"]) == (1, 0)
    loader.close()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_after_a_break_the_next_loop_has_the_rest_of_the_epoch(num_workers: int) -> None:
    loader = make(num_workers=num_workers)
    assert take(loader, 5) + epochs(loader) == epochs(make())


@pytest.mark.parametrize("num_workers", [0, 2])
def test_after_a_break_set_epoch_leaves_the_rest(num_workers: int) -> None:
    loader = make(num_workers=num_workers)
    take(loader, 5)
    loader.set_epoch(1)
    assert epochs(loader) == epochs(make(), 2)[12:]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_newer_loop_ends_an_older_one_and_gets_its_own_batches(num_workers: int) -> None:
    loader = make(num_workers=num_workers)
    older = iter(loader)
    next(older)
    newer = iter(loader)
    assert plain(next(newer)) == epochs(make())[1]
    with pytest.raises(InputError, match="outdated"):
        next(older)
    assert [plain(batch) for batch in newer] == epochs(make())[2:]
    loader.close()


def test_a_position_that_is_moved_in_a_loop_ends_it() -> None:
    loader = make()
    start = loader.state_dict()
    for move in (lambda: loader.load_state_dict(start), lambda: loader.set_epoch(4), loader.close):
        loader.set_epoch(0)
        batches = iter(loader)
        next(batches)
        move()
        with pytest.raises(InputError, match="outdated"):
            next(batches)


def test_set_epoch_of_the_running_epoch_changes_nothing() -> None:
    loader, found = make(), []
    for batch in loader:
        loader.set_epoch(0)
        found.append(plain(batch))
    assert found == epochs(make())


@pytest.fixture
def _no_others_workers() -> None:
    """An exception that another test has caught may hold an iterator with its workers."""
    gc.collect()


@pytest.mark.usefixtures("_no_others_workers")
def test_workers_stay_for_the_next_epoch_and_end_with_close() -> None:
    loader = make(num_workers=2)
    list(loader)
    workers = {child.pid for child in multiprocessing.active_children()}
    list(loader)
    assert {child.pid for child in multiprocessing.active_children()} == workers
    loader.close()
    assert not multiprocessing.active_children()
    assert len(list(loader)) == 12
    loader.close()


@pytest.mark.usefixtures("_no_others_workers")
def test_a_sigterm_to_every_process_leaves_the_workers_their_last_batches() -> None:
    loader = make(num_workers=2)
    batches = iter(loader)
    # One of each worker, so that both have begun.
    next(batches)
    next(batches)
    workers = multiprocessing.active_children()
    assert len(workers) == 2
    for worker in workers:
        os.kill(worker.pid, signal.SIGTERM)
    assert len(list(batches)) == len(loader) - 2
    loader.close()
    for worker in workers:
        worker.join()


@pytest.mark.usefixtures("_no_others_workers")
def test_workers_end_with_the_loader() -> None:
    loader = make(num_workers=1)
    list(loader)
    del loader
    assert not multiprocessing.active_children()


def test_torchs_loader_underneath_gives_the_same_and_counts_too() -> None:
    loader = make()
    underneath = loader.get_loader()
    assert isinstance(underneath, DataLoader) and len(underneath) == 12
    assert [plain(batch) for batch in underneath] == epochs(make())
    assert loader.epoch == 1


class Poisoned(Noisy):
    """One sample cannot be read before it is mended."""

    def __getitem__(self, index: int) -> Any:
        if index == 20 and not os.environ.get("MENDED"):
            raise ValueError("planted")
        return index


def test_an_error_of_a_sample_is_shown_and_its_batch_not_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loader = RankAwareDataLoader(Poisoned(), batch_size=4, shuffle=False)
    with pytest.raises(ValueError, match="planted"):
        list(loader)
    assert loader.state_dict()["batches_done"] == 5
    monkeypatch.setenv("MENDED", "1")
    assert next(iter(loader)).tolist() == [20, 21, 22, 23]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_what_the_loop_was_given_is_noted_for_a_rehearsal(
    num_workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(data_order.FOLDER, str(tmp_path))
    killed = make(num_workers=num_workers)
    take(killed, 5)
    resumed = make()
    resumed.load_state_dict(killed.state_dict())
    killed.close()
    list(resumed)
    noted = (tmp_path / "rank-0.jsonl").read_text().splitlines()
    list(make())
    assert (tmp_path / "rank-0.jsonl").read_text().splitlines() == noted * 2
    lines = [json.loads(line) for line in noted]
    assert [(line["epoch"], line["batch"]) for line in lines] == [(0, n) for n in range(12)]
    assert len({line["digest"] for line in lines}) == 12


def test_what_workers_hold_can_be_sent_to_a_spawned_one() -> None:
    batches = pickle.loads(pickle.dumps(make().get_loader().dataset))
    key = next(iter(make().get_loader().batch_sampler))
    assert plain(batches.__getitems__(key)) == epochs(make())[0]


def test_what_is_left_out_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    make()
    make(uneven="pad")
    make(rank=1, world=2)
    make(48)
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 2
    assert "2 of 50 samples fill no global batch of 4 and are left out, others in each" in said[0]
    assert "2 of 50 samples come twice in each epoch" in said[1]


def test_ranks_that_have_not_met_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match=r"call ranks\.join"):
        make()
    # Who says that each process has all the samples, means it.
    assert len(make(config=DistributedConfig(strategy="single"))) == 12
    assert len(make(rank=0, world=1)) == 12


def test_rank_and_world_belong_together() -> None:
    with pytest.raises(InputError, match="both rank and world"):
        make(rank=1)


def test_a_dataset_without_a_length_is_refused() -> None:
    with pytest.raises(InputError, match="list_iterator has no length"):
        RankAwareDataLoader(iter([1]), batch_size=1)


def test_what_differs_between_ranks_is_named_with_its_ranks() -> None:
    first = {"samples": 100, "seed": 1, "order": 5}
    assert differing([first, first]) == ""
    found = differing([first, {"samples": 96, "seed": 1, "order": 6}])
    assert "samples 100 on rank 0, 96 on rank 1" in found
    assert "seed" not in found and "order" not in found
    assert "order 5 on rank 0, 6 on rank 1" in differing([first, {**first, "order": 6}])


# --- real ranks


def read_two_epochs(num_workers: int) -> list[list[int]]:
    me = ranks.join()
    loader = make(batch_size=4, num_workers=num_workers)
    assert me.world == 2
    found = [batch[0].tolist() for _ in range(2) for batch in loader]
    loader.close()
    ranks.leave()
    return found


@pytest.mark.parametrize("num_workers", [0, 2])
def test_each_rank_sees_its_own_samples_in_a_new_order_each_epoch(num_workers: int) -> None:
    first, second = run_ranks(2, read_two_epochs, num_workers)
    assert len(first) == len(second) == 12
    for epoch in (slice(0, 6), slice(6, 12)):
        seen = list(chain(*first[epoch], *second[epoch]))
        assert len(seen) == len(set(seen)) == 48
    assert first[:6] != first[6:]


def meet_a_shorter_loader(kind: str) -> str:
    me = ranks.join(DistributedConfig(timeout_s=LIMIT_S))
    loader = make(50 - 6 * me.rank if kind == "shorter" else 50)
    if kind == "resumed" and me.rank == 1:
        loader.load_state_dict({**loader.state_dict(), "batches_done": 3})
    try:
        list(loader)
    except InputError as error:
        return str(error)
    finally:
        ranks.leave()
    return "nothing"


def test_a_loader_that_is_shorter_on_one_rank_is_named_on_all_before_the_epoch() -> None:
    for said in run_ranks(2, meet_a_shorter_loader, "shorter"):
        assert "samples 50 on rank 0, 44 on rank 1" in said
        assert "batches 6 on rank 0, 5 on rank 1" in said


def test_ranks_that_went_on_from_different_checkpoints_are_named() -> None:
    for said in run_ranks(2, meet_a_shorter_loader, "resumed"):
        assert "batches_done 0 on rank 0, 3 on rank 1" in said


def train_with_a_joined_end() -> tuple[list[int], list[float]]:
    """50 samples are 6 batches of 8 and 2 samples; no Join context is around the loop."""
    ranks.join()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    loader, sizes = make(uneven="join"), []
    for _ in range(2):
        for batch in loader:
            model(batch[3]).sum().backward()
            sizes.append(len(batch[0]))
            assert not ranks.agree_any(False)
    grad = model.module.weight.grad.flatten().tolist()
    del model
    ranks.leave()
    return sizes, grad


def test_training_with_a_joined_end_does_not_hang() -> None:
    (sizes, grad), other = run_ranks(2, train_with_a_joined_end)
    assert sizes == [4, 4, 4, 4, 4, 4, 1] * 2
    assert other == (sizes, grad)


# --- kills


def train_until_killed(folder: str, run: int, epochs: int, lives: bool) -> None:
    """Log each batch, save now and then, and die at a random moment after a random batch."""
    dice, place = random.Random(run), Path(folder)
    loader = make(num_workers=run % 3)
    if (place / "state.json").exists():
        loader.load_state_dict(json.loads((place / "state.json").read_text()))
    dies_after = dice.randint(1, 8)
    log = os.open(place / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for number, (epoch, batch) in enumerate(_all_epochs(loader, epochs), 1):
        key = [epoch, loader.state_dict()["batches_done"]]
        os.write(log, json.dumps([key, plain(batch)]).encode() + b"\n")
        if number % 3 == 0:
            write_whole(place / "state.json", json.dumps(loader.state_dict()).encode())
        if number == dies_after and not lives:
            die = threading.Timer(dice.random() * 0.005, os.kill, (os.getpid(), signal.SIGKILL))
            die.start()
    while not lives:
        signal.pause()  # the end came first: the timer is under way


def _all_epochs(loader: RankAwareDataLoader, count: int) -> Iterator[tuple[int, Any]]:
    for epoch in range(loader.epoch, count):
        for batch in loader:
            yield epoch, batch


def kill_many_times(folder: Path, kills: int, epochs: int) -> int:
    """The kills that were survived; each batch that was ever seen must be the one that it is."""
    for run in range(kills):
        with pytest.raises(RanksFailed) as failed:
            run_ranks(1, train_until_killed, str(folder), run, epochs, False)
        assert failed.value.codes == [-signal.SIGKILL], failed.value
    run_ranks(1, train_until_killed, str(folder), kills, epochs, True)
    loader = make()
    expected = {
        (epoch, loader.state_dict()["batches_done"]): plain(batch)
        for epoch, batch in _all_epochs(loader, epochs)
    }
    seen = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    assert {tuple(key) for key, _ in seen} == set(expected)
    assert all(batch == expected[tuple(key)] for key, batch in seen)
    return kills


def test_5_real_kills_do_not_change_what_the_training_sees(tmp_path: Path) -> None:
    assert kill_many_times(tmp_path, kills=5, epochs=3) == 5


def test_a_script_that_ends_in_the_middle_of_an_epoch_ends_at_once() -> None:
    script = (
        "from boxcar.training.data.loader import RankAwareDataLoader\n"
        "batches = iter(RankAwareDataLoader(range(50), batch_size=4, num_workers=2))\n"
        "next(batches)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert (ended.returncode, "Alarm clock" in ended.stderr) == (0, False), ended.stderr


class Stills(Dataset[Any]):
    """Draws nothing, until it is told to."""

    draws_from = 24

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> Any:
        return float(index) + (random.random() if index >= self.draws_from else 0)


def stills(draws_from: int) -> Stills:
    found = Stills()
    found.draws_from = draws_from
    return found


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("draws_from", [0, 12, 23, 24])
def test_samples_are_the_same_whenever_a_process_meets_the_first_that_draws(
    num_workers: int, draws_from: int
) -> None:
    loader = RankAwareDataLoader(
        stills(draws_from), batch_size=4, num_workers=num_workers, shuffle=False
    )
    found = list(chain.from_iterable(batch.tolist() for _ in range(2) for batch in loader))
    loader.close()
    alone = SeededSamples(stills(draws_from), seed=0)
    assert found == [alone.read((epoch, [n]))[0] for epoch in range(2) for n in range(24)]


def test_a_loader_leaves_the_generators_of_the_training_as_they_are() -> None:
    def train(draws_from: int) -> list[Any]:
        random.seed(1), numpy.random.seed(1), torch.manual_seed(1)
        loader = RankAwareDataLoader(stills(draws_from), batch_size=4)
        return [(random.random(), numpy.random.randn(), torch.rand(1).item()) for _ in loader]

    assert train(24) == train(0) == train(15)


def test_a_collate_function_that_draws_is_seeded_like_its_samples() -> None:
    def noisy(samples: list[int]) -> list[float]:
        return [sample + random.random() for sample in samples]

    def batches() -> list[list[float]]:
        return list(RankAwareDataLoader(Stills(), batch_size=4, collate_fn=noisy))

    assert batches() == batches()


def test_the_last_batch_is_kept_as_torch_does_by_default() -> None:
    loader = RankAwareDataLoader(Noisy(), batch_size=4)
    sizes = [len(numbers) for numbers, *_ in loader]
    assert sizes == [4] * 12 + [2]
    assert sizes == [len(one[0]) for one in torch.utils.data.DataLoader(Noisy(), batch_size=4)]


def test_a_checkpoint_of_an_older_default_says_how_to_go_on_as_it_was() -> None:
    older = make().state_dict()
    (problem,) = refused(RankAwareDataLoader(Noisy(), batch_size=4, seed=3), older)
    assert "saved with uneven='drop', and here it is 'join': set uneven='drop'" in problem
    make(uneven="drop").load_state_dict(older)


@pytest.mark.parametrize("uneven", ["join", "pad"])
def test_where_all_batches_are_full_an_older_checkpoint_simply_goes_on(uneven: str) -> None:
    killed = make(48)
    first = take(killed, 5)
    rest = make(48, uneven=uneven)
    rest.load_state_dict(killed.state_dict())
    assert first + epochs(rest) == epochs(make(48))


def refused(loader: RankAwareDataLoader, state: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        loader.load_state_dict(state)
    assert (loader.epoch, loader.state_dict()["batches_done"]) == (0, 0)
    return caught.value.problems


def test_the_batch_size_may_stand_in_the_config(capfd: pytest.CaptureFixture[str]) -> None:
    config = DistributedConfig(batch_size=8)
    assert len(next(iter(RankAwareDataLoader(Noisy(), config)))[0]) == 8
    assert len(next(iter(RankAwareDataLoader(Noisy(), config, batch_size=2)))[0]) == 2
    capfd.readouterr()
    assert len(next(iter(RankAwareDataLoader(Noisy(), DistributedConfig())))[0]) == 1
    assert "a batch is 1 sample" in capfd.readouterr().err
    with pytest.raises(InputError, match="a batch size is batch_size="):
        RankAwareDataLoader(Noisy(), 32)  # type: ignore[arg-type]
