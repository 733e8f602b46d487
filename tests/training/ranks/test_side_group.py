from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch.distributed as dist
from ranks_at_work import RanksFailed, run_ranks

from boxcar.shared.errors import InputError, NoRoomError, TemporaryError
from boxcar.training.ranks import ranks
from boxcar.training.ranks.side_group import SideGroup


def test_alone_it_talks_to_itself() -> None:
    side = SideGroup()
    assert (side.rank, side.world) == (0, 1)
    assert side.tell({"a": 1}) == {"a": 1}
    assert side.gather(b"x") == [b"x"]
    assert side.on_main(lambda: 5) == 5
    assert side.everywhere(lambda: 5) == [5]
    side.together([])
    with pytest.raises(InputError, match="wrong"):
        side.together(["wrong"])


def fail(error: Exception) -> None:
    raise error


def said_by(ask: Callable[[Any], Any], error: Exception | None) -> list[str]:
    try:
        ask(lambda: error and fail(error))
    except Exception as raised:
        return [type(raised).__name__, str(raised)]
    return []


def counted(ask: Callable[[], Any]) -> int:
    """The collectives that it takes."""
    with pytest.MonkeyPatch.context() as patch:
        called: list[str] = []
        for name in ("broadcast", "all_gather"):
            call = getattr(dist, name)
            patch.setattr(
                dist, name, lambda *a, call=call, **more: called.append("") or call(*a, **more)
            )
        ask()
    return len(called)


def talk() -> dict:  # type: ignore[type-arg]
    me = ranks.join()
    side = SideGroup()
    found = {
        "told": side.tell(["from", me.rank]),
        "empty": side.tell(None),
        "much": [len(side.tell("x" * size)) for size in (32_765, 32_766, 32_767, 100_000)],
        "rooms": [[len(data) for data in side.gather(b"x" * (32_760 + of))] for of in (0, 8, 9)],
        "collectives": [counted(lambda: side.tell([1])), counted(lambda: side.gather(b"1"))],
        "gathered": side.gather(bytes([me.rank]) * (1 + 70_000 * me.rank))[1][-2:],
        "nothing": side.gather(b""),
        "ours": said_by(side.on_main, NoRoomError("full")),
        "other": said_by(side.on_main, KeyError("x")),
        "each": side.everywhere(lambda: [me.rank]),
        "one of us": said_by(side.everywhere, KeyError("x") if me.rank else None),
        "both": said_by(side.everywhere, NoRoomError(f"full on {me.rank}")),
    }
    try:
        side.everywhere(lambda: me.rank and fail(InputError(["this", "that"])))
    except InputError as error:
        found["problems"] = error.problems
    try:
        side.together(["all", *(["mine"] if me.rank else [])])
    except InputError as error:
        found["together"] = error.problems
    found["current"] = [side.is_current]
    held = side.group
    ranks.leave()
    found["current"] += [side.is_current, SideGroup().is_current, bool(held)]
    del held
    try:
        side.tell(1)
    except TemporaryError as error:
        found["left"] = "have left their process group" in str(error)
    return found


def test_two_ranks_agree() -> None:
    one, two = run_ranks(2, talk)
    assert one["told"] == two["told"] == ["from", 0]
    assert one["gathered"] == two["gathered"] == b"\x01\x01"
    assert one["nothing"] == [b"", b""]
    assert one["much"] == two["much"] == [32_765, 32_766, 32_767, 100_000]
    assert one["rooms"] == two["rooms"] == [[32_760 + of] * 2 for of in (0, 8, 9)]
    # A busy machine takes milliseconds for each.
    assert one["collectives"] == two["collectives"] == [1, 1]
    assert one["ours"] == two["ours"] == ["NoRoomError", "full"]
    assert one["other"] == ["KeyError", "'x'"]
    assert two["other"] == ["BoxcarError", "rank 0: KeyError: 'x'"]
    assert one["each"] == two["each"] == [[0], [1]]
    assert one["one of us"] == ["BoxcarError", "rank 1: KeyError: 'x'"]
    assert two["one of us"] == ["KeyError", "'x'"]
    assert one["both"] == two["both"] == ["NoRoomError", "full on 0"]
    assert one["problems"] == two["problems"] == ("this", "that")
    assert one["current"] == two["current"] == [True, False, True, True]
    assert one["together"] == two["together"] == ("all", "rank 1: mine")
    assert one["left"]
    assert two["left"]


def leave_early() -> None:
    me = ranks.join()
    side = SideGroup()
    if me.rank:
        raise SystemExit(3)
    side.gather(b"")


def test_a_rank_that_has_gone_is_noticed_at_once() -> None:
    with pytest.raises(RanksFailed, match="another rank has left or does not answer") as failed:
        run_ranks(2, leave_early)
    assert failed.value.codes == [1, 3]
