from __future__ import annotations

from big_run import plain_lines, shot

from boxcar.laptop.view.board.layout import HISTORY, Focus, OpenedCell, layout

SHOT = shot(36, 3)
LOG = tuple(f"epoch {n} loss {1 / (n + 1):.3f}" for n in range(200))
OPENED = OpenedCell(
    "seg_explode", "failed", ("box-a  2/20", "M2 CUDA out of memory"), ("2026  attempt 1",), LOG
)


def shown(focus: Focus, opened: OpenedCell = OPENED, size: tuple[int, int] = (80, 24)) -> list[str]:
    lines = layout(SHOT, *size, focus, opened)
    assert len(lines) == size[1] and max(line.cell_len for line in lines) <= size[0]
    return plain_lines(lines)


def test_it_shows_how_the_cell_stands_and_the_end_of_its_log() -> None:
    lines = shown(Focus(opened="seg_explode"))
    assert "✗ seg_explode  failed" in lines
    assert "  M2 CUDA out of memory" in lines
    assert "epoch 199 loss 0.005" in lines
    assert any(line.startswith("next: ") for line in lines)


def test_it_scrolls_back_to_the_first_line_that_is_known_and_no_further() -> None:
    assert "epoch 189 loss 0.005" in shown(Focus(opened="seg_explode", back=10))
    first = shown(Focus(opened="seg_explode", back=1_000_000))
    assert "epoch 0 loss 1.000" in first


def test_what_happened_is_its_other_page() -> None:
    assert "2026  attempt 1" in shown(Focus(opened="seg_explode", page=HISTORY))


def test_a_log_that_is_not_here_yet_and_one_that_does_not_exist_are_told_apart() -> None:
    told = [OpenedCell("a", "running", log=log) for log in (None, ())]
    asking, missing = (shown(Focus(opened="a"), one) for one in told)
    assert "loading…" in asking and "no log yet" in missing


def test_a_wide_line_of_a_log_is_wrapped_and_cannot_drive_the_terminal() -> None:
    log = ("\x1b[2Jx" * 60, "层" * 90)
    for size in ((80, 24), (40, 12), (5, 3)):
        shown(Focus(opened="a"), OpenedCell("a", "running", log=log), size)
