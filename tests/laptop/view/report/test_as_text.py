"""A report as text: what each format holds, escapes and leaves out."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from report_cells import DIGEST, ablation, cell, made
from waiting import LIMIT_S

from boxcar.laptop.view.report import as_text, report_page
from boxcar.laptop.view.report.run_report import Report

HOSTILE = "<script>alert(1)</script>|&%$#_{}~^\\"


def html(report: Report) -> str:
    return report_page.page_of_report(report, {})


FORMATS = {
    "md": as_text.markdown,
    "latex": as_text.latex,
    "csv": as_text.as_csv,
    "json": lambda report: json.dumps(as_text.document(report)),
    "html": html,
}
each_format = pytest.mark.parametrize("write", FORMATS.values(), ids=FORMATS)


@each_format
def test_every_export_names_its_receipt_and_is_the_same_each_time(
    write: Callable[[Report], str],
) -> None:
    text = write(made(ablation()))
    assert DIGEST in text and text == write(made(ablation()))


def test_latex_leaves_incomplete_groups_out_unless_they_are_asked_for() -> None:
    report = made(ablation())
    assert r"no\_skip" in as_text.latex(report) and "small" not in as_text.latex(report)
    assert as_text.left_out(report) == ["small"]
    whole = made(ablation(), is_incomplete_shown=True)
    assert "small & 2 & (0.4)" in as_text.latex(whole) and as_text.left_out(whole) == []


def test_a_number_below_zero_has_a_minus_sign_in_latex() -> None:
    assert r"$-$0.20$\pm$0.23" in as_text.latex(made(ablation()))


def test_the_page_is_in_the_language_of_who_reads_it() -> None:
    text = report_page.page_of_report(made(ablation()), {}, "zh")
    assert '<html lang="zh">' in text and "验收单 <code>" in text
    assert ">尝试</th>" in text and "个种子" in text and "small 不完整" in text
    assert ">baseline:" not in text and "attempts" not in text and "vs." not in text


def test_a_hostile_name_is_text_in_every_format() -> None:
    report = made([cell(HOSTILE, None, 1.0, lr="<b>|")])
    assert "<script>alert" not in html(report) and "&lt;script&gt;" in html(report)
    (row,) = [x for x in as_text.markdown(report).splitlines() if "alert" in x and x[0] == "|"]
    assert "<script>" not in row and row.count("|") - row.count("\\|") == 8
    tex = as_text.latex(report)
    assert r"\&\%\$\#\_\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}" in tex
    assert (
        json.loads(json.dumps(as_text.document(report)))["tables"][0]["groups"][0]["group"]
        == HOSTILE
    )


def test_a_spreadsheet_runs_nothing() -> None:
    text = as_text.as_csv(made([cell("=HYPERLINK(1)", None, -1.5, lr="@x")]))
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["cell"] == "'=HYPERLINK(1)" and row["set.lr"] == "'@x" and row["dice"] == "-1.5"


def test_a_name_in_csv_does_not_drive_the_terminal() -> None:
    text = as_text.as_csv(made([cell("a", None, 1.5, **{"l\x1b[2Jr": "\x1b]0;x\x07"})]))
    assert "\x1b" not in text and "\x07" not in text and "set.l\\x1b[2Jr" in text


def test_csv_has_a_line_for_each_cell_and_no_number_of_what_is_not_proven() -> None:
    rows = list(csv.DictReader(io.StringIO(as_text.as_csv(made(ablation())))))
    assert len(rows) == 9
    assert [(row["dice"], row["lack"]) for row in rows if row["is_proven"] == "False"] == [
        ("", "failed (M2)")
    ]


def test_the_baseline_and_what_is_furthest_from_it_get_colours() -> None:
    cells = [cell(f"g{n}", None, float(n), lr=str(n)) for n in range(20)]
    (table,) = made([*cells, cell("x_baseline", None, 3.0, lr="b")]).tables
    shown = [row.name for row in report_page.shown_page(table)]
    assert shown[:4] == ["x_baseline", "g19", "g18", "g17"]


def test_a_number_that_never_changes_has_no_curve() -> None:
    lines = {
        "loss": [(1.0, 1.0, 2.0), (2.0, 2.0, 1.0)],
        "total": [(1.0, 1.0, 9.0), (2.0, 2.0, 9.0)],
    }
    points = {("r", "a"): lines}
    text = report_page.page_of_report(made([cell("a", None, 1.0)]), points)
    assert "<h3>loss" in text and "<h3>total" not in text


def test_the_page_asks_the_network_for_nothing_and_runs_what_sorts_and_nothing_else() -> None:
    text = html(made(ablation()))
    [script] = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:; " in text
    assert f"script-src 'sha256-{digest}'" in text
    for forbidden in ("<script ", "http://", "https://", "src=", "@import", "url("):
        assert forbidden not in text
    assert "innerHTML" not in script and "fetch" not in script


def test_the_best_is_bold_with_a_sign_where_text_has_both() -> None:
    report = made(ablation(), best={"dice": "max"})
    assert "| **0.80±0.10 ★** |" in as_text.markdown(report)
    assert "dice ↑ |" in as_text.markdown(report) and "★ best" in as_text.markdown(report)
    assert r"\textbf{0.80$\pm$0.10}" in as_text.latex(report)
    assert r"dice $\uparrow$" in as_text.latex(report)
    assert '<strong><span role="img" aria-label="best">★</span> 0.80±0.10</strong>' in html(report)
    assert "★<" not in html(made(ablation())) and "★" not in as_text.markdown(made(ablation()))


def test_a_screen_reader_hears_what_each_cell_and_chart_is() -> None:
    cells = [cell(f"g{n}", None, n / 4, lr=str(n)) for n in range(3)]
    loss = {"loss": [(float(step), float(step), 2.0 - step / 4) for step in range(5)]}
    text = report_page.page_of_report(made(cells), {("r", "g1"): loss})
    assert '<html lang="en">' in text and "<main>" in text
    assert "<caption>r: seg; baseline: g0</caption>" in text
    assert text.count('<th scope="row"') == 3 and text.count('<th scope="col"') == 7
    assert '<div class="wide" tabindex="0" role="region" aria-label="seg">' in text
    assert 'role="img" aria-label="loss: g1 2 → 1"' in text
    assert 'role="img" aria-label="dice / GPU-h: g0 0 @ 2; g' in text
    assert re.findall(r"<h(\d)>", text) == ["1", "2", "3", "3"]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine")
def test_latex_compiles_also_with_names_that_are_commands(tmp_path: Path) -> None:
    bad = [
        cell(name, seed, 0.5, lr=name, **{"k_%&#": name})
        for name in ("a_b", "x%&#$^~\\\\{}<>|", "größe±→Δ", "\\input{/etc/passwd}")
        for seed in (1, 2, 3)
    ]
    begin = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
    for number, table in enumerate((made(bad), made(ablation(), is_incomplete_shown=True))):
        paper = tmp_path / f"paper{number}.tex"
        paper.write_text(f"{begin}{as_text.latex(table)}\\end{{document}}\n", encoding="utf-8")
        words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-draftmode", paper.name]
        done = subprocess.run(
            words, cwd=tmp_path, capture_output=True, check=False, timeout=LIMIT_S
        )
        assert done.returncode == 0, done.stdout.decode(errors="replace")[-1500:]


def test_cost_is_drawn_against_a_number_where_each_group_has_one_and_hours_else() -> None:
    priced = [cell("a", s, 0.5, lr="1", price="2 CNY/h") for s in (1, 2)]
    other = [cell("b", s, 0.6, lr="2", price="3 CNY/h") for s in (1, 2)]
    assert "dice vs. cost" in report_page.page_of_report(made([*priced, *other]), {})
    bare = [cell("b", s, 0.6, lr="2") for s in (1, 2)]
    assert "dice vs. GPU-hours" in report_page.page_of_report(made([*priced, *bare]), {})


def test_csv_and_json_name_the_gpus_that_trained_a_cell() -> None:
    two = ["Tesla T4"] * 2
    report = made([cell("a", None, 0.5, gpus=two), cell("b", None, 0.5, lr="1")])
    one, other = csv.DictReader(io.StringIO(as_text.as_csv(report)))
    assert (one["gpus"], one["gpu_uuids"]) == ("2 x Tesla T4", "GPU-0 GPU-1")
    assert (one["driver"], other["gpus"], other["ranks"]) == ("580.1", "", "2")
    groups = as_text.document(report)["tables"][0]["groups"]
    first, second = (group["cells"][0] for group in groups)
    assert [gpu["name"] for gpu in first["trained_on"]["gpus"]] == two
    assert "trained_on" not in second
