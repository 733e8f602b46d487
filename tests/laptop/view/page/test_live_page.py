"""The page of a run of any size: all that needs a person is on it, nothing of it runs but its own
script, and it asks for nothing but itself. In a browser, beside the report's page: nothing is wider
than the window, and the console has nothing to say.
"""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import browser
import pytest
import report_cells
from big_run import FACTS, shot, view
from run_on_disk import from_now

from boxcar.laptop.run.view import RunView
from boxcar.laptop.view.gpu_history import NOTHING_SEEN, history_after_look
from boxcar.laptop.view.page import cell_curves
from boxcar.laptop.view.page.live_page import Private, Reading, page_of_run
from boxcar.laptop.view.report.report_page import page_of_report as report_page
from boxcar.laptop.view.run_rows import Facts, RunRows
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.known_secrets import KnownSecrets

READING = Reading(30.0, 120.0)
HOSTILE = '<img src=x onerror="alert(1)">&{{ 7*7 }}'


def made(given: RunView, facts: Facts = FACTS, private: Private | None = None) -> str:
    reports = cell_curves.reports_after_look({}, given)
    return page_of_run(rows_of(given, facts), reports, READING, private or Private())


def rows_of(given: RunView, facts: Facts) -> RunRows:
    return RunRows(given, facts, history_after_look(NOTHING_SEEN, given))


def reported(given: RunView, cell: str, *numbers: dict[str, Any]) -> RunView:
    """The view with reports of a cell in the journal of the first queue."""
    events = tuple(
        Event(
            number,
            f"{number}",
            from_now(0),
            "cell.progress",
            {"cell": cell, "progress": report},
            {},
        )
        for number, report in enumerate(numbers, start=1)
    )
    first, *rest = given.queues
    return replace(given, queues=(replace(first, events=events), *rest))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("cells", "boxes"), [(3, 1), (9, 3), (400, 20)])
def test_a_run_of_any_size_has_each_cell_and_box_on_it(
    cells: int, boxes: int, language: str
) -> None:
    given = view(cells, boxes)
    text = made(given, replace(FACTS, language=language))
    for cell in given.cells:
        assert cell.name in text
    for queue in given.queues:
        assert f">{queue.box}<" in text
    assert {"en": "needs attention", "zh": "需要处理"}[language] in text
    assert f'<html lang="{language}">' in text and FACTS.next in text


def test_the_policy_lets_only_its_own_script_run_and_ask_only_for_itself() -> None:
    text = made(view(9, 3))
    [script] = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    assert html.unescape(policy).startswith("default-src 'none'; style-src 'unsafe-inline'; ")
    assert f"script-src 'sha256-{digest}'" in html.unescape(policy)
    assert "connect-src 'self'" in html.unescape(policy)
    assert re.findall(r'(?:src|href)="([^"]*)"', text) == ["data:,"]


def hostile() -> str:
    """A page all of whose names are somebody's attack."""
    given = view(9, 3)
    bad = tuple(replace(cell, name=f"{HOSTILE}{cell.name}", box=HOSTILE) for cell in given.cells)
    told = reported(
        replace(given, run=HOSTILE, cells=bad, problems=(HOSTILE,)),
        bad[0].name,
        {"step": 1, f"loss{HOSTILE}": 1.0},
        {"step": 2, f"loss{HOSTILE}": 0.5},
    )
    return made(told, replace(FACTS, because=HOSTILE, profile=HOSTILE, next=HOSTILE))


def test_hostile_names_are_text() -> None:
    text = hostile()
    assert "<img" not in text and "&lt;img src=x" in text and "{{ 7*7 }}" in text
    assert html.escape(f"loss{HOSTILE}") in text


def test_what_a_script_or_ssh_printed_stands_there_without_an_address_or_a_secret() -> None:
    given = replace(view(3, 1), problems=("403 of https://me:tok@10.0.0.9/x with correct-horse",))
    text = made(given, private=Private(KnownSecrets(["correct-horse"])))
    assert "403 of […] with […]" in text
    assert "10.0.0.9" not in text and "correct-horse" not in text


def test_the_curves_of_the_cells_at_work_come_first_and_nan_is_a_gap() -> None:
    given = view(9, 1)
    busy = next(cell for cell in given.cells if cell.word == "running")
    values = [float(n) if n != 3 else float("nan") for n in range(6)]
    steps = [{"step": 8 * n, "train_loss": value, "epoch": n} for n, value in enumerate(values)]
    text = made(reported(given, busy.name, *steps))
    assert "<figcaption>train_loss<br>" in text and "<figcaption>epoch" not in text
    [chart] = re.findall(r"<figure>.*?</figure>", text, re.DOTALL)
    assert chart.count("<polyline") == 2 and "NaN" not in chart and "nan" not in chart


def test_a_run_without_cells_is_a_page_too() -> None:
    given = replace(view(3, 1), cells=(), queues=())
    assert "<h1>big</h1>" in made(given, replace(FACTS, next="", because=""))


def test_it_says_when_the_look_was_so_that_whoever_reads_it_sees_how_old_it_is() -> None:
    given = view(3, 1)
    text = made(given)
    assert f'<body data-at="{given.at}" data-every="30.0" data-old="120.0"' in text
    assert 'datetime="' + given.at in text


def test_the_size_of_the_page_does_not_explode_with_the_run() -> None:
    assert len(made(view(400, 20))) < 500_000
    assert len(shot(400, 20).view.cells) == 400


def test_pages_of_9_and_400_cells_and_of_hostile_names_fit_and_ask_for_nothing(
    tmp_path: Path,
) -> None:
    many = [
        report_cells.cell(f"a_long_name_of_a_cell_{n}", s, n / 400, lr=str(n))
        for n in range(133)
        for s in range(3)
    ]
    bad = [
        report_cells.cell(f"{HOSTILE}{n}", s, n / 9, **{HOSTILE: f"{HOSTILE}{n}"})
        for n in range(3)
        for s in (1, 2)
    ]
    pages = {
        "live-9": made(view(9, 3)),
        "live-400": made(view(400, 20)),
        "live-hostile": hostile(),
        "report-9": report_page(report_cells.made(report_cells.ablation()), {}),
        "report-400": report_page(report_cells.made(many), {("r", c.name): CURVE for c in many}),
        "report-hostile": report_page(report_cells.made(bad), {}),
    }
    seen = browser.look(pages, tmp_path)
    assert seen.console == []
    assert {frame["name"] for frame in seen.frames} == set(pages)
    for frame in seen.frames:
        assert frame["needs"] <= frame["has"], frame
        assert frame["images"] == 0 and set(frame["tables"]) <= {"auto"}, frame
        assert frame["scripts"] == 1, frame
    assert set(seen.asked) == {"", *pages}


def test_it_takes_what_is_new_and_says_when_nobody_answers_any_more(tmp_path: Path) -> None:
    quick, given = Reading(1.0, 120.0), view(9, 3)
    first = page_of_run(rows_of(given, FACTS), {}, quick, Private())
    later = rows_of(given, replace(FACTS, because="9 more have failed since"))
    second = page_of_run(later, {}, quick, Private())
    new = browser.after(itertools.chain([first], itertools.repeat(second)), tmp_path, for_ms=5000)
    assert "9 more have failed since" in new and re.search(r'<p id="gone"[^>]* hidden', new)
    assert re.search(r'id="age"[^>]*>updated \d+\w* ago,<', new)
    gone = browser.after(iter([first]), tmp_path, for_ms=5000)
    assert "Disconnected" in re.sub(r'data-said="[^"]*"', "", gone)
    assert given.cells[0].name in gone, "what was last known stays"


CURVE = {"loss": [(float(step), float(step), 1.0 / (step + 1)) for step in range(50)]}
