"""The page of a run of any size: all that needs a person is on it, nothing of it runs but its own
script, and it asks for nothing but itself. In a browser, beside the report's page: nothing is wider
than the window, and the console has nothing to say.
"""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import json
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
from boxcar.laptop.view.page.cell_curves import Reports
from boxcar.laptop.view.page.live_page import (
    Private,
    Reading,
    Shown,
    page_of_run,
    page_of_runs,
)
from boxcar.laptop.view.page.page_state import PageState
from boxcar.laptop.view.report.report_page import page_of_report as report_page
from boxcar.laptop.view.run_rows import Facts, RunRows
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.known_secrets import KnownSecrets

HOSTILE = '<img src=x onerror="alert(1)">&{{ 7*7 }}'


def made(given: RunView, facts: Facts = FACTS, private: Private | None = None) -> str:
    reports = cell_curves.reports_after_look({}, given)
    return state_of(rows_of(given, facts), reports, private or Private()).text


def state_of(
    rows: RunRows, reports: Reports, private: Private, number: int = 0, every_s: float = 30.0
) -> PageState:
    return page_of_run(rows, reports, Reading(every_s, 120.0), private, number=number)


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


@pytest.mark.parametrize("language", ["en", "zh"])
def test_who_hears_the_page_is_told_what_each_table_column_row_and_region_is(language: str) -> None:
    """What axe-core found, or would find; `docs/performance.md` says how it was run."""
    given = view(9, 3)
    reports = [{"step": n, "train_loss": 1 / (n + 1)} for n in range(4)]
    looked = reported(given, given.cells[0].name, *reports)
    text = made(looked, replace(FACTS, language=language))
    tables = re.findall(r"<table>.*?</table>", text, re.DOTALL)
    assert len(tables) == 4 and text.count("<main>") == text.count("<h1>") == 1
    for table in tables:
        assert re.search(r"<caption>[^<]+</caption>", table), table[:200]
        head, _, body = table.partition("</thead>")
        columns = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', head)
        assert len(columns) == head.count("<th ") > 1 and all(columns), columns
        assert body.count('<th scope="row"') == body.count("<tr "), body[:200]
    scrolled = re.findall(r'<\w+ class="wide"[^>]*>', text)
    assert all('role="region" tabindex="0" aria-label="' in one for one in scrolled) and scrolled
    spark = r'<svg class="spark[^>]* aria-hidden="true">.*?</svg><span class="unseen">1 … 0.3333<'
    assert re.search(spark, text) and 'role="img" aria-label="train_loss / step: ' in text


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
    assert "<figcaption>train_loss<" in text and "<figcaption>epoch" not in text
    [chart] = re.findall(r"<figure.*?</figure>", text, re.DOTALL)
    [points] = re.findall(r' d="([^"]*)"', chart)
    assert points == "M0 0 8 1 16 2M32 4 40 5" and "nan" not in chart.lower()


def test_a_run_without_cells_is_a_page_too() -> None:
    given = replace(view(3, 1), cells=(), queues=())
    assert "<h1>big</h1>" in made(given, replace(FACTS, next="", because=""))


def test_it_says_when_the_look_was_so_that_whoever_reads_it_sees_how_old_it_is() -> None:
    given = view(3, 1)
    text = made(given)
    assert f'<body data-at="{given.at}" data-number="" data-every="30.0" data-old="120.0"' in text
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
    given = view(9, 3)
    first = state_of(rows_of(given, FACTS), {}, Private(), every_s=1.0).text
    later = rows_of(given, replace(FACTS, because="9 more have failed since"))
    second = state_of(later, {}, Private(), every_s=1.0).text
    new = browser.after(itertools.chain([first], itertools.repeat(second)), tmp_path, for_ms=5000)
    assert "9 more have failed since" in new and re.search(r'<p [^>]*class="gone"[^>]* hidden', new)
    assert re.search(r'class="age[^>]*>updated \d+\w* ago,<', new)
    gone = browser.after(iter([first]), tmp_path, for_ms=5000)
    assert "Disconnected" in re.sub(r'data-said="[^"]*"', "", gone)
    assert given.cells[0].name in gone, "what was last known stays"


def two_looks(cells: int = 9) -> tuple[PageState, PageState]:
    """Served; in between a cell that ran has ended, and the other one has reported."""
    before = view(cells, 3)
    ran, runs = [cell for cell in before.cells if cell.word == "running"][:2]
    done = next(cell for cell in before.cells if cell.is_verified)
    reports = [{"step": n, "loss": 1 / (n + 1)} for n in range(4)]
    after = replace(
        before,
        at=from_now(30),
        cells=tuple(
            replace(cell, record=done.record, metrics={"psnr_db": 30.0}) if cell is ran else cell
            for cell in before.cells
        ),
    )
    looks = (reported(before, runs.name, *reports[:3]), reported(after, runs.name, *reports))
    first, second = (
        state_of(rows_of(look, FACTS), cell_curves.reports_after_look({}, look), Private(), n, 1.0)
        for n, look in enumerate(looks, start=1)
    )
    return first, second


def test_a_refresh_has_the_rows_that_changed_and_the_ends_of_the_curves() -> None:
    first, second = two_looks(400)
    news = json.loads(second.since(first))
    assert set(news["after"]) <= set(news["parts"]), "a row that moves is new or has changed"
    rows = [id for id in news["parts"] if id.startswith(("cells:", "running:"))]
    assert 1 <= len(rows) <= 3 and len(second.since(first)) < len(second.whole) / 20
    [(kept, tail)] = news["curves"].values()
    assert kept > 10 and tail == " 3 0.25"
    assert json.loads(first.since(first))["parts"] == {}


def test_where_more_than_its_parts_differs_the_page_comes_whole() -> None:
    first, second = two_looks()
    other = replace(second, text=second.text.replace("<summary>", "<summary>more "))
    assert other.since(first) == other.whole


def test_a_page_that_took_what_changed_is_the_page_that_would_come_whole(tmp_path: Path) -> None:
    """Its rows in the same order, its curves, and what was opened and typed stays."""
    first, second = two_looks()
    ended = next(id for id in second.since(first).decode().split('"') if id.startswith("cells:"))[
        6:
    ]
    script = """
      one("details").open = true;
      doc.getElementById("cells:CELL").querySelector("button").focus();
      await until(() => doc.body.dataset.number === "2");
      const parts = ["tr[id]", "path", "#counts", "#next"].map((what) =>
        [...doc.querySelectorAll(what)].map((at) => [at.id, at.textContent, at.getAttribute("d")]));
      return [parts, one("details").open, doc.activeElement.dataset.cell];"""
    script = script.replace("CELL", ended)

    def changed(name: str) -> str:
        return second.since(first).decode() if "since=1" in name else first.text

    taken, is_open, focused = browser.use(changed, script, tmp_path / "1")
    whole, *_ = browser.use(lambda name: second.text, script, tmp_path / "2")
    assert taken == whole and len(taken[0]) == 18 and taken[1][0][2]
    assert is_open and focused == ended, "also where its row went elsewhere"


def test_rows_are_filtered_sorted_and_opened_by_keys_alone(tmp_path: Path) -> None:
    page, _ = two_looks(60)
    asked: list[str] = []

    def answer(name: str) -> str | None:
        asked.append(name)
        if "cell=" in name:
            return f"<article data-cell={name.partition('=')[2]}><pre>the end</pre></article>"
        return page.text if "since" not in name else page.since(page).decode()

    found = browser.use(answer, KEYS, tmp_path)
    assert found["filtered"] == ["cells", "3 of 60 cells"], "both words, in any of its columns"
    assert found["chosen"] == "✗\u00a0recon_no_skip_connection_q1_seed1"
    assert found["opened"] == ["the end"] * 2 and found["closed"] == ["the end"]
    assert found["back"] == found["chosen"], "the focus is where it was"
    assert found["sorted"] == sorted(found["sorted"]) != found["again"]
    assert found["again"] == sorted(found["sorted"], reverse=True)
    assert found["sort"] == ["ascending", "descending"]


KEYS = """
  const box = one(".tools input"), found = {};
  const rows = () => [...doc.querySelectorAll("[data-id=cells] tbody tr:not([hidden])")];
  key("/");
  doc.activeElement.value = "FAILED q1";
  doc.activeElement.dispatchEvent(new frame.contentWindow.Event("input", { bubbles: true }));
  found.filtered = [doc.querySelector("details").open && "cells", one(".tools output").textContent];
  key("ArrowDown");
  found.chosen = doc.activeElement.textContent;
  doc.activeElement.click();
  await until(() => one(".opened pre"));
  doc.querySelector("[data-id=running] tbody button").click();
  await until(() => texts(".opened pre").length === 2);
  found.opened = texts(".opened pre");
  one(".opened .close").click();
  found.closed = texts(".opened pre");
  found.back = doc.activeElement.textContent;
  box.value = "verified";
  box.dispatchEvent(new frame.contentWindow.Event("input", { bubbles: true }));
  const heads = [...doc.querySelectorAll("[data-id=cells] thead th")];
  const head = heads.find((one) => one.textContent === "time");
  const column = () => rows().map((row) => row.cells[head.cellIndex].textContent).map((text) =>
    text.includes("m") ? 60 * parseInt(text) + parseInt(text.split("m")[1]) : parseInt(text));
  head.querySelector("button").click();
  found.sort = [head.getAttribute("aria-sort")];
  found.sorted = column();
  head.querySelector("button").click();
  found.sort.push(head.getAttribute("aria-sort"));
  found.again = column();
  return found;"""


def test_what_stands_in_a_column_is_sorted_by_what_it_means(tmp_path: Path) -> None:
    page, _ = two_looks()
    script = """
      const { worth } = frame.contentWindow;
      const seen = ["12m left", "1h05m left", "剩余 2d03h", "41s", "~1.1/3", "12k/1,500k",
        "9999/12k", "~loss 0.5", "acc -1e-3, loss 2", "97 %!", "RAM 9.4/16 G", "nan"];
      return seen.map((text) => String(worth(text)));"""
    found = browser.use(lambda name: page.text, script, tmp_path)
    assert found[:4] == ["720", "3900", "183600", "41"]
    assert found[4:] == ["1.1", "12000", "9999", "0.5", "-0.001", "97", "9.4", "NaN"]


CURVE = {"loss": [(float(step), float(step), 1.0 / (step + 1)) for step in range(50)]}


def test_two_runs_share_the_tables_and_the_charts_under_names_of_their_own(tmp_path: Path) -> None:
    given = view(9, 3)
    runs = next(cell.name for cell in given.cells if cell.word == "running")
    looks = [
        reported(given, runs, *({"step": n, "loss": n * loss} for n in range(3)))
        for loss in (1.0, 0.5)
    ]
    shown = [
        Shown(rows_of(look, FACTS), cell_curves.reports_after_look({}, look), Private(), name)
        for look, name in zip(looks, ("mine", "theirs"), strict=True)
    ]
    page = page_of_runs(shown, Reading(30.0, 120.0), number=1)
    assert "<title>mine · theirs</title>" in page.text and "18 cells" in page.text
    for name in ("mine", "theirs"):
        assert f'data-cell="{name}/{runs}"' in page.text
        assert f"{name}: next: " in page.text
    assert page.curves[f"loss/mine/{runs}"] != page.curves[f"loss/theirs/{runs}"]
    ids = re.findall(r' id="([^"]*)"', page.text)
    assert len(ids) == len({*ids}), "else a refresh would change the other run's row"
    looks_of = re.findall(r'class="(c\d[^"]*)" data-cell', page.text)
    assert len(looks_of) == len({*looks_of}) == 2, "one colour each"
    script = """
      one(".tools input").value = "theirs/ running";
      one(".tools input").dispatchEvent(new frame.contentWindow.Event("input", { bubbles: true }));
      return texts("[data-id=running] tbody tr:not([hidden]) th");"""
    found = browser.use(lambda name: page.text, script, tmp_path)
    assert found and all("theirs/" in text for text in found)


def test_each_number_has_a_column_and_what_is_guessed_stands_in_it_with_its_mark(
    tmp_path: Path,
) -> None:
    given = view(9, 3)
    done, ran, *_rest = [cell for cell in given.cells if cell.is_verified][:2]
    numbers = {done.name: {"loss": 0.5, "acc": 0.7}, ran.name: {"~loss": 0.25, "acc": 0.9}}
    cells = tuple(
        replace(cell, metrics=numbers.get(cell.name, {}), progress={}) for cell in given.cells
    )
    page = made(replace(given, cells=cells))
    script = """
      one("details").open = true;
      const heads = [...doc.querySelectorAll("[data-id=cells] thead th")];
      const at = heads.findIndex((head) => head.textContent === "acc");
      const loss = heads.findIndex((head) => head.textContent === "loss");
      heads[at].querySelector("button").click();
      const rows = [...doc.querySelectorAll("[data-id=cells] tbody tr")].slice(0, 2);
      return rows.map((row) => [row.cells[at].textContent, row.cells[loss].textContent]);"""
    found = browser.use(lambda name: page, script, tmp_path)
    assert found == [["0.7", "0.5"], ["0.9", "~0.25"]]


def test_a_part_of_a_curve_is_larger_and_stays_so_after_a_refresh(tmp_path: Path) -> None:
    given = view(9, 3)
    runs = next(cell.name for cell in given.cells if cell.word == "running")
    told = reported(given, runs, *({"step": n, "loss": 100.0 / (n + 1)} for n in range(41)))
    page = state_of(
        rows_of(told, FACTS), cell_curves.reports_after_look({}, told), Private(), 1, 1.0
    )
    asked: list[str] = []

    def answer(name: str) -> str:
        asked.append(name)
        return page.text if "since" not in name else page.whole.decode()

    script = """
      const line = () => one(".curves").getAttribute("transform"), whole = line(), found = {};
      const said = () => one("figure .range").textContent;
      key("z");
      found.half = [said(), line() !== whole];
      key("z");
      found.quarter = said();
      await new Promise((go) => setTimeout(go, 1500));
      found.kept = said();
      key("z");
      found.back = [said(), line() === whole];
      const plot = one(".plot > div"), box = one(".plot svg").getBoundingClientRect();
      const at = (type, part) => plot.dispatchEvent(new frame.contentWindow.PointerEvent(type,
        { bubbles: true, clientX: box.left + box.width * part }));
      at("pointerdown", 0.5);
      at("pointerup", 0.25);
      found.dragged = said();
      plot.dispatchEvent(new frame.contentWindow.MouseEvent("dblclick", { bubbles: true }));
      found.again = [said(), line() === whole];
      return found;"""
    found = browser.use(answer, script, tmp_path)
    assert found["half"] == ["20 … 40: 2.439 … 4.762", True]
    assert found["quarter"] == found["kept"] == "30 … 40: 2.439 … 3.226"
    assert found["back"] == found["again"] == ["", True]
    assert re.fullmatch(r"(9\.\d+|10(\.\d+)?) … 20(\.\d+)?: [\d.]+ … [\d.]+", found["dragged"])
    assert any("since" in name for name in asked)
