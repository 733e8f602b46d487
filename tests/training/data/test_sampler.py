"""The order of samples: unique over ranks, new in each epoch, exact after every kill."""

from __future__ import annotations

import random
from collections import Counter
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boxcar.shared.errors import InputError
from boxcar.training.data.sampler import RankSampler, Shares


def make(
    rank: int = 0,
    world: int = 1,
    *,
    samples: int = 103,
    batch_size: int = 4,
    uneven: str = "drop",
    seed: int = 7,
    shuffle: bool = True,
) -> RankSampler:
    return RankSampler(Shares(samples, batch_size, rank, world, uneven), seed=seed, shuffle=shuffle)


def all_ranks(world: int, **options: Any) -> list[RankSampler]:
    return [make(rank, world, **options) for rank in range(world)]


def batches(sampler: RankSampler) -> list[list[int]]:
    return [indices for _, indices in sampler]


def global_batches(samplers: list[RankSampler]) -> list[list[int]]:
    """What the ranks see together in each step."""
    of_rank = [batches(sampler) for sampler in samplers]
    assert len({len(mine) for mine in of_rank}) == 1
    return [list(chain(*step)) for step in zip(*of_rank, strict=True)]


worlds = st.fixed_dictionaries(
    {
        "samples": st.integers(1, 300),
        "batch_size": st.integers(1, 9),
        "world": st.integers(1, 8),
        "seed": st.integers(0, 5),
    }
)


@settings(max_examples=150)
@given(worlds, st.sampled_from(["drop", "join", "pad"]))
def test_no_sample_comes_twice_or_is_lost_beyond_what_is_said(
    options: dict[str, int], uneven: str
) -> None:
    try:
        samplers = all_ranks(**options, uneven=uneven)
    except InputError:
        smallest = options["world"] * (1 if uneven == "join" else options["batch_size"])
        assert options["samples"] < smallest and uneven != "pad"
        return
    seen = Counter(chain(*global_batches(samplers)))
    shares = samplers[0].shares
    repeats = sum(seen.values()) - len(seen)
    assert set(seen) <= set(range(options["samples"]))
    assert options["samples"] - len(seen) == shares.left_out
    assert repeats == shares.repeated
    assert all(len(mine) == len(batches(mine)) for mine in samplers)
    if uneven == "join":
        assert seen == Counter(range(options["samples"]))


@settings(max_examples=100)
@given(worlds)
def test_shares_of_a_joined_batch_differ_by_one_at_most_and_none_is_empty(
    options: dict[str, int],
) -> None:
    try:
        of_rank = [batches(sampler) for sampler in all_ranks(**options, uneven="join")]
    except InputError:
        return
    for step in zip(*of_rank, strict=True):
        sizes = [len(share) for share in step]
        assert min(sizes) >= 1 and max(sizes) - min(sizes) <= 1
        assert max(sizes) <= options["batch_size"] + 1


def test_set_epoch_changes_the_order_and_the_samples_that_are_left_out() -> None:
    sampler = make()
    first = list(chain(*batches(sampler)))
    sampler.set_epoch(1)
    second = list(chain(*batches(sampler)))
    assert first != second and set(first) != set(second)
    sampler.set_epoch(0)
    assert list(chain(*batches(sampler))) == first


def test_the_order_depends_on_the_seed() -> None:
    assert batches(make(seed=1)) != batches(make(seed=2))


def test_without_shuffle_the_order_is_the_datasets_in_every_epoch() -> None:
    sampler = make(shuffle=False)
    first = batches(sampler)
    assert first[0] == [0, 1, 2, 3]
    sampler.set_epoch(5)
    assert batches(sampler) == first


@pytest.mark.parametrize("uneven", ["drop", "join", "pad"])
def test_another_number_of_ranks_sees_the_same_global_batches(uneven: str) -> None:
    one = global_batches(all_ranks(1, batch_size=24, uneven=uneven))
    assert one == global_batches(all_ranks(2, batch_size=12, uneven=uneven))
    assert one == global_batches(all_ranks(6, batch_size=4, uneven=uneven))


def test_the_order_is_what_it_was_when_the_first_checkpoints_were_written() -> None:
    assert batches(make(samples=12))[0] == FIRST_BATCH
    assert make(samples=12).state_dict()["order"] == FIRST_ORDER


FIRST_BATCH = [0, 6, 8, 2]
FIRST_ORDER = 492


def test_1000_random_kills_do_not_change_the_order_of_the_data() -> None:
    dice = random.Random(360)
    for _ in range(1000):
        one_random_kill(dice)


def one_random_kill(dice: random.Random) -> None:
    """Train to a random point, go on from its state, perhaps with another number of ranks."""
    worlds = [1, 2, 3, 4, 6]
    before, after = dice.choice(worlds), dice.choice(worlds)
    uneven = dice.choice(["drop", "join", "pad"])
    # From 6 on, "join" divides its end in the same way for all of these worlds.
    samples = 12 * dice.randint(2, 20) + dice.choice([0, *range(6, 12)])
    options = {"samples": samples, "uneven": uneven, "seed": dice.randrange(99)}
    epoch = dice.randrange(3)
    whole = all_ranks(before, batch_size=12 // before, **options)
    for sampler in whole:
        sampler.set_epoch(epoch)
    steps = global_batches(whole)
    done = dice.randint(0, len(steps))
    whole[0].batches_done = done
    rest = all_ranks(after, batch_size=12 // after, **options)
    for sampler in rest:
        sampler.load_state_dict(whole[0].state_dict())
        # A loop says so at its top, after a resume too.
        sampler.set_epoch(epoch)
    assert global_batches(rest) == steps[done:]


def test_a_state_of_another_global_batch_is_refused_with_the_batch_size_that_fits() -> None:
    state = make(batch_size=4).state_dict()
    with pytest.raises(InputError, match=r"global_batch=4.* it is 8: .*set batch_size=2"):
        make(0, 2, batch_size=4).load_state_dict(state)


@pytest.mark.parametrize(
    "other", [{"samples": 90}, {"seed": 8}, {"shuffle": False}, {"uneven": "pad"}]
)
def test_a_state_of_another_order_is_refused_and_changes_nothing(other: dict[str, Any]) -> None:
    sampler = make(**other)
    sampler.move_to(2, 3)
    with pytest.raises(InputError, match=next(iter(other))):
        sampler.load_state_dict(make().state_dict())
    assert (sampler.epoch, sampler.batches_done) == (2, 3)


def test_a_torch_that_shuffles_in_another_way_is_noticed() -> None:
    state = make().state_dict()
    with pytest.raises(InputError, match="the order that torch shuffles into has changed"):
        make().load_state_dict({**state, "order": state["order"] + 1})


def test_something_that_is_no_state_is_refused() -> None:
    with pytest.raises(InputError, match="not the state of a loader"):
        make().load_state_dict({"step": 4})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"samples": 0}, "the dataset is empty"),
        ({"samples": 3}, "3 samples make no batch"),
        ({"samples": 1, "world": 2, "uneven": "join"}, "1 samples make no batch"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"rank": 2, "world": 2}, "rank=2, world=2"),
        ({"uneven": "repeat"}, "found 'repeat'"),
    ],
)
def test_what_cannot_be_divided_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make(**options)


def test_an_epoch_below_0_is_refused() -> None:
    with pytest.raises(InputError, match="expected 0 or more, found -1"):
        make().set_epoch(-1)
