"""The page of a report: what can be read of it by everybody, and its tables sorted in a browser."""

from __future__ import annotations

import re
from pathlib import Path

import browser
import pytest
from report_cells import cell, made

from boxcar.laptop.view.report import report_page

LOOK = (Path(report_page.__file__).parent / "look.css").read_text(encoding="utf-8")
THEMES = dict(zip(("light", "dark"), re.findall(r":root \{([^}]*)\}", LOOK), strict=True))
# By WCAG 2.2, AA: of text, and of what has to be seen of a drawing.
TEXT, DRAWN = 4.5, 3.0


def colours(theme: str) -> dict[str, str]:
    found = re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", THEMES[theme])
    return {name: f"#{value[1:] * (2 if len(value) == 4 else 1)}" for name, value in found}


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def blended(colour: str, paper: str, opacity: float) -> str:
    pairs = [(int(colour[at : at + 2], 16), int(paper[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(opacity * c + (1 - opacity) * p):02x}" for c, p in pairs)


@pytest.mark.parametrize("theme", THEMES)
def test_every_colour_can_be_told_from_what_it_stands_on(theme: str) -> None:
    found = colours(theme)
    for name in ("ink", "soft", *(f"c{number}" for number in range(8))):
        for ground in ("paper", "raised"):
            assert contrast(found[name], found[ground]) >= TEXT, (name, ground)
    assert contrast(found["rest"], found["paper"]) >= DRAWN
    [opacity] = re.findall(r"\.faint \{ opacity: ([.\d]+)", LOOK)
    for number in range(8):
        faint = blended(found[f"c{number}"], found["paper"], float(opacity))
        assert contrast(faint, found["paper"]) >= DRAWN, number


PRESSED = """
const heads = [...doc.querySelectorAll("thead th")];
const seen = () => [...doc.querySelectorAll("tbody th")].map((one) => one.textContent).join();
const press = (text) => {
  const head = heads.find((one) => one.textContent.startsWith(text));
  head.querySelector("button").click();
  return [seen(), head.getAttribute("aria-sort")];
};
doc.querySelector("thead button").focus();
return [[seen(), doc.activeElement.tagName], press("dice"), press("dice"), press("cell"),
  press("Δ"), heads.filter((one) => one.ariaSort).length];
"""


def test_a_head_sorts_its_table_under_the_policy_of_the_page(tmp_path: Path) -> None:
    values = {"b10": 0.5, "b9": 0.75, "a": 0.25, "none": None}
    cells = [cell(name, None, value, lr=name) for name, value in values.items()]
    page = report_page.page_of_report(made(cells, best={"dice": "max"}), {})
    assert "Content-Security-Policy" in page
    assert browser.use({"page": page}.get, PRESSED, tmp_path) == [
        ["b10,b9,a,none", "BUTTON"],
        ["b9,b10,a,none", "descending"],  # the best first
        ["a,b10,b9,none", "ascending"],
        ["a,b9,b10,none", "ascending"],
        ["b9,a,b10,none", "descending"],
        1,
    ]
