"""Streams over ranks and workers: each element once, the same batches, exact after a kill."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest
import torch
from ranks_at_work import run_ranks
from torch.utils.data import IterableDataset, get_worker_info

from boxcar.shared.errors import InputError
from boxcar.training.data import stream
from boxcar.training.data.loader import RankAwareDataLoader
from boxcar.training.ranks import ranks


class Numbers(IterableDataset[Any]):
    """(number, a draw of the augmentation)."""

    def __init__(self, count: int = 50) -> None:
        self.count = count

    def __iter__(self) -> Iterator[Any]:
        for number in range(self.count):
            yield number, torch.rand(())


class Parts(IterableDataset[Any]):
    """A stream that shards itself; its parts are not of one length."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers, self.epoch = numbers, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def shard(self, num_shards: int, index: int) -> Parts:
        return Parts(self.numbers[index::num_shards])

    def __iter__(self) -> Iterator[Any]:
        # It would divide its part once more: Hugging Face's streams do.
        assert get_worker_info() is None
        for number in self.numbers:
            yield number, torch.rand(()), self.epoch


pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def make(dataset: Any = None, **options: Any) -> RankAwareDataLoader:
    return RankAwareDataLoader(
        dataset or Numbers(), **{"batch_size": 4, "rank": 0, "world": 1, **options}
    )


def batches(loader: RankAwareDataLoader, epochs: int = 1) -> list[list[Any]]:
    found = [[part.tolist() for part in batch] for _ in range(epochs) for batch in loader]
    loader.close()
    return found


def steps(world: int, dataset: Any = None, **options: Any) -> list[list[int]]:
    """The numbers that all ranks see together in each step."""
    of_rank = [
        [numbers for numbers, *_ in batches(make(dataset, rank=rank, world=world, **options))]
        for rank in range(world)
    ]
    assert len({len(mine) for mine in of_rank}) == 1
    return [list(chain(*step)) for step in zip(*of_rank, strict=True)]


@pytest.mark.parametrize("num_workers", [0, 1, 3])
def test_batches_and_draws_do_not_depend_on_the_number_of_workers(num_workers: int) -> None:
    loader = make(num_workers=num_workers)
    assert batches(loader, epochs=2) == batches(make(), epochs=2)


@pytest.mark.parametrize(("world", "num_workers"), [(1, 2), (2, 0)])
@pytest.mark.parametrize(
    ("uneven", "end"), [("drop", []), ("join", [[48, 49]]), ("pad", [[48, 49] * 4])]
)
def test_each_element_is_seen_once_whatever_the_ranks(
    world: int, num_workers: int, uneven: str, end: list[list[int]]
) -> None:
    found = steps(world, batch_size=8 // world, num_workers=num_workers, uneven=uneven)
    assert found == [list(range(start, start + 8)) for start in range(0, 48, 8)] + end


def test_fewer_elements_than_ranks_join_the_batch_before() -> None:
    found = steps(4, batch_size=2, uneven="join")
    assert [sorted(step) for step in found[-2:]] == [list(range(32, 40)), list(range(40, 50))]


@pytest.mark.parametrize(
    ("uneven", "before", "after"), [("drop", 3, 0), ("drop", 0, 2), ("join", 0, 0), ("pad", 0, 0)]
)
def test_a_killed_run_goes_on_exactly(uneven: str, before: int, after: int) -> None:
    whole = batches(make(uneven=uneven), epochs=2)
    for done in (5, 12, 17):
        killed = make(uneven=uneven, num_workers=before)
        source = (batch for _ in range(2) for batch in killed)
        for _ in range(done):
            next(source)
        rest = make(uneven=uneven, num_workers=after)
        rest.load_state_dict(killed.state_dict())
        epochs = 2 - rest.epoch
        assert batches(rest, epochs=epochs) == whole[done:]
        killed.close()


def test_another_number_of_ranks_goes_on_exactly() -> None:
    killed = make(batch_size=8)
    for _ in zip(range(3), killed, strict=False):
        pass
    state = killed.state_dict()
    rest = []
    for rank in range(2):
        loader = make(rank=rank, world=2)
        loader.load_state_dict(state)
        rest.append(batches(loader))
    joined = [[a + b for a, b in zip(*step, strict=True)] for step in zip(*rest, strict=True)]
    assert joined == batches(make(batch_size=8))[3:]


class Shuffled(Numbers):
    """Draws its order as it goes, as a shuffle buffer does."""

    def __iter__(self) -> Iterator[Any]:
        buffer: list[int] = []
        for number in range(self.count):
            buffer.append(number)
            if len(buffer) == 8:
                yield buffer.pop(random.randrange(8)), torch.rand(())
        random.shuffle(buffer)
        yield from ((number, torch.rand(())) for number in buffer)


def test_a_shuffle_buffer_gives_one_order_to_all_processes_and_another_in_each_epoch() -> None:
    assert sorted(chain(*steps(2, Shuffled(48), num_workers=2))) == list(range(48))
    both = batches(make(Shuffled()), epochs=2)
    assert both[:12] != both[12:]


class DividedByWorker(Numbers):
    """What torch's own documentation proposes."""

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return ((number, torch.rand(())) for number in range(first, self.count, step))


def test_a_stream_that_divides_itself_among_workers_is_not_divided_twice() -> None:
    assert steps(2, DividedByWorker(), num_workers=3) == steps(2)


def test_a_stream_that_shards_itself_is_read_part_by_part() -> None:
    seen = steps(2, Parts(list(range(48))), num_workers=2, batch_size=3)
    assert sorted(chain(*seen)) == list(range(48))
    epochs = [which for *_, which in batches(make(Parts([1, 2, 3, 4])), epochs=2)]
    assert epochs == [[0] * 4, [1] * 4]


def test_all_that_fills_a_batch_of_a_part_is_seen() -> None:
    # Parts of 4 and 3 elements and more: worker 1's ends first, worker 0's goes on.
    loader = make(Parts([0, 1, 0, 1, 0, 1, 0]), num_workers=2, batch_size=2)
    assert [numbers for numbers, *_ in batches(loader)] == [[0, 0], [1, 1], [0, 0]]


@pytest.mark.parametrize("done", [2, 6])
def test_a_stream_that_shards_itself_goes_on_exactly(done: int) -> None:
    def part() -> RankAwareDataLoader:
        return make(Parts(list(range(60))), rank=1, world=2, num_workers=3, batch_size=2)

    whole, killed = batches(part()), part()
    for _ in zip(range(done), killed, strict=False):
        pass
    rest = part()
    rest.load_state_dict(killed.state_dict())
    killed.close()
    assert batches(rest) == whole[done:]


def test_a_stream_that_shards_itself_must_keep_its_parts() -> None:
    state = make(Parts([1, 2])).state_dict()
    with pytest.raises(InputError, match="must stay as they were"):
        make(Parts([1, 2]), num_workers=2).load_state_dict(state)
    with pytest.raises(InputError, match="use uneven='drop'"):
        make(Parts([1, 2]), uneven="join")


def test_a_joined_stream_must_keep_its_ranks_because_its_end_depends_on_them() -> None:
    state = make(uneven="join", batch_size=8).state_dict()
    with pytest.raises(InputError, match="must stay as they were"):
        make(uneven="join", world=2).load_state_dict(state)


class Broken(Numbers):
    def __iter__(self) -> Iterator[Any]:
        yield from ((number, 0) for number in range(6))
        raise ValueError("planted")


@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_error_of_the_stream_is_never_its_end(num_workers: int) -> None:
    loader = make(Broken(), num_workers=num_workers)
    for _ in range(2):
        with pytest.raises(ValueError, match="planted"):
            list(loader)
    assert loader.state_dict()["batches_done"] == 1
    loader.close()


def test_too_few_elements_for_the_ranks_are_refused() -> None:
    with pytest.raises(InputError, match="1 elements, too few for 2 ranks"):
        batches(make(Numbers(1), world=2, uneven="join"))


def test_a_stream_has_no_length() -> None:
    with pytest.raises(TypeError, match="a stream has no length"):
        len(make())


def test_a_long_skip_and_what_is_left_out_are_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stream, "_SAID_AFTER_S", -1)
    loader = make()
    loader.load_state_dict({**loader.state_dict(), "batches_done": 5})
    list(loader), list(loader)
    said = capfd.readouterr().err
    assert "read over 20 elements that were done before" in said
    assert said.count("2 elements at the end fill no batch") == 1
    batches(make(num_workers=2), epochs=2)
    assert capfd.readouterr().err.count("2 elements at the end fill no batch") == 1


# --- two real ranks


def steps_of_uneven_parts() -> list[list[int]]:
    me = ranks.join()
    # 9 numbers for rank 0, 20 for rank 1.
    numbers = [n for pair in zip(range(9), range(100, 109), strict=True) for n in pair]
    dataset = Parts([*numbers, *(n for k in range(11) for n in (-1, 109 + k))])
    dataset.shard = (
        lambda num_shards, index: Parts(  # type: ignore[method-assign]
            [n for n in dataset.numbers[index::num_shards] if n >= 0]
        )
    )
    loader = RankAwareDataLoader(dataset, batch_size=2)
    found = [numbers for numbers, *_ in batches(loader, epochs=2)]
    ranks.leave()
    assert me.world == 2
    return found


def test_ranks_with_parts_of_unlike_length_end_their_epochs_together() -> None:
    first, second = run_ranks(2, steps_of_uneven_parts)
    assert first == [[0, 1], [2, 3], [4, 5], [6, 7]] * 2
    assert second == [[100, 101], [102, 103], [104, 105], [106, 107]] * 2
