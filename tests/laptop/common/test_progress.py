"""How far something is, in a sentence."""

from __future__ import annotations

from boxcar.laptop.common.progress import THINGS, Progress
from boxcar.shared.sentence import _


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def made(what: str = "pull", **options: str) -> tuple[Progress, Clock]:
    clock = Clock()
    return Progress(what, clock=clock, **options), clock  # type: ignore[arg-type]


def test_bytes_are_said_with_their_rate_and_the_time_left() -> None:
    progress, clock = made()
    part = progress.part(6_000_000_000)
    part.at(1_200_000_000)
    clock.now_s = 12.0
    assert progress.line() == "pull: 1.2 GB of 6.0 GB (20 %), 100.0 MB/s, 48s left"


def test_several_parts_are_named_where_something_is_done() -> None:
    progress, clock = made("push")
    a, b, _ = (progress.part(1000, name) for name in ("box-a", "box-b", "box-c"))
    a.at(500)
    b.end()
    clock.now_s = 1.0
    assert progress.line() == "push: 1.5 kB of 3.0 kB (50 %), 1.5 kB/s, 1s left; box-a 50 %"


def test_things_are_counted_and_what_is_at_work_is_named() -> None:
    progress, clock = made("smoke", unit=THINGS)
    part = progress.part(1200)
    part.add(300)
    part.doing = "recon_base"
    clock.now_s = 60.0
    assert progress.line() == "smoke: 300 of 1,200 (25 %), 3m00s left, now recon_base"


def test_a_total_that_is_known_before_its_parts_counts() -> None:
    progress, _ = made()
    progress.expect(1000)
    progress.part(100, "box-a seg").end()
    assert (progress.total, progress.done) == (1000, 100)
    assert "(10 %)" in str(progress.line())


def test_more_than_all_is_never_said() -> None:
    progress, _ = made()
    progress.part(100).at(150)
    assert "(100 %)" in str(progress.line())


def test_what_begins_again_after_a_cut_does_not_go_back() -> None:
    progress = Progress("pull")
    part = progress.part(100)
    for done in (60, 10, 70):
        part.at(done)
        assert progress.done >= 60


def test_where_nothing_came_that_is_said() -> None:
    progress, clock = made("push")
    progress.part(100)
    clock.now_s = 30.0
    assert progress.line() == "push: 0 B of 100 B (0 %), no progress lately"


def test_nothing_is_said_before_anything_is_known() -> None:
    progress, _ = made()
    assert progress.line() is None


def test_it_is_said_in_chinese_too() -> None:
    progress, clock = made(_("pull"))
    progress.part(1000, "box-a").at(500)
    clock.now_s = 10.0
    line = progress.line()
    assert line and line.said("zh") == (
        "拉取：500 B / 1.0 kB（50 %），50 B/s，剩余 10s，正在处理 box-a"
    )


def test_a_time_left_that_was_told_is_said_whatever_the_speed_was() -> None:
    """Two cells that end at once, after a minute without any, say nothing of the seven to come."""
    progress, clock = made("running", unit=THINGS, is_left_told=True)  # type: ignore[arg-type]
    a, b = progress.part(5, "queue_1"), progress.part(4, "queue_2")
    a.add(2)
    clock.now_s = 60.0
    assert " left" not in str(progress.line()), "of one of them nobody knows"
    a.left_s, b.left_s = 70.0, 150.0
    assert ", 2m30s left" in str(progress.line())
