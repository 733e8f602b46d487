"""The documentation names what is there: every link leads somewhere, every verb can be typed."""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
# `boxcar/laptop` is a folder, `boxcar: {…}` a setting, and a prompt or a path may stand before it.
TYPED = re.compile(
    r"(?:^|[\s`/(])(?:invoke|boxcar) ([a-z]+(?:-[a-z]+)*)(?![\w=-])(.*)", re.MULTILINE
)
FLAG = re.compile(r"(?<![\w=-])(--[a-z]+(?:-[a-z]+)*)")
CODE = re.compile(r"^```[^\n]*\n(.*?)^```|`([^`\n]+)`", re.MULTILINE | re.DOTALL)
COMMON = {"--list", "--help", "--version"}


def links(page: str) -> list[str]:
    found = LINK.findall((ROOT / page).read_text(encoding="utf-8"))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def typed(page: str) -> list[tuple[str, tuple[str, ...]]]:
    """Each verb that stands in code, with the flags behind it on the line."""
    text = (ROOT / page).read_text(encoding="utf-8")
    code = "\n".join(block or span for block, span in CODE.findall(text))
    return [(verb, tuple(FLAG.findall(rest.split("#")[0]))) for verb, rest in TYPED.findall(code)]


def headings(page: Path) -> set[str]:
    """As GitHub turns them into anchors."""
    lines = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


@functools.cache
def verbs() -> dict[str, set[str]]:
    """What `tasks.py` has: verb -> its flags."""
    sys.path.insert(0, str(ROOT))
    try:
        from tasks import namespace
    finally:
        sys.path.remove(str(ROOT))
    return {
        name: {flag for argument in found.get_arguments() for flag in _flags(argument.names)}
        for name, found in namespace.tasks.items()
    }


def _flags(names: tuple[str, ...]) -> set[str]:
    return {f"--{name.replace('_', '-')}" for name in names if len(name) > 1}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file_and_a_heading(page):
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = ((ROOT / page).parent / name).resolve() if name else ROOT / page
        assert target.exists(), f"{page}: {link}"
        assert not anchor or anchor in headings(target), f"{page}: {link}"


@pytest.mark.parametrize("page", PAGES)
def test_every_verb_and_flag_that_is_named_can_be_typed(page):
    for verb, flags in typed(page):
        assert verb in verbs(), f"{page}: there is no verb {verb!r}"
        unknown = set(flags) - verbs()[verb] - COMMON
        assert not unknown, f"{page}: {verb} has no {', '.join(sorted(unknown))}"


def test_the_page_of_verbs_has_every_verb_with_all_its_flags():
    rows = dict(re.findall(r"^\| `([a-z-]+)` \|(.*)\|$", _page_of_verbs(), re.MULTILINE))
    everywhere = {"--profile", "--job", "--json"}
    assert set(rows) == set(verbs())
    for verb, row in rows.items():
        assert set(FLAG.findall(row.split("|")[-1])) == verbs()[verb] - everywhere, verb


def test_the_table_of_decisions_has_all_of_them_and_no_number_twice():
    folder = ROOT / "docs" / "decisions"
    files = sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert links("docs/decisions/README.md") == files
    assert len({name[:4] for name in files}) == len(files)


@pytest.mark.parametrize("page", [page for page in PAGES if re.search(r"decisions/\d", page)])
def test_each_decision_has_a_date_and_a_status(page):
    head = (ROOT / page).read_text(encoding="utf-8").split("\n\n")[1]
    status = r"accepted|withdrawn 20\d\d-\d\d-\d\d|replaced by \[\d{4}\]\([\w-]+\.md\)"
    assert re.fullmatch(rf"Date: 20\d\d-\d\d-\d\d[.\n]\s*Status: ({status})\.?", head), head


def folders() -> list[str]:
    """Every folder of the product that has modules, from its room on."""
    files = [path for top in ("boxcar", "onbox") for path in (ROOT / top).rglob("*.py")]
    return sorted({path.parent.relative_to(ROOT).as_posix() for path in files})


def unnamed(page: str) -> list[str]:
    """The folders whose name, with a slash behind it, stands nowhere on the page."""
    names = set(re.findall(r"([\w-]+)/", page))
    return [folder for folder in folders() if folder.rpartition("/")[2] not in names]


def test_the_architecture_is_one_page_that_names_every_folder():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert unnamed(page) == []
    assert page.count("\n") <= 140


def test_a_folder_that_no_page_names_is_found():
    assert "boxcar/laptop/hosts" in unnamed("verbs/ and results/")


# What is no file of ours: a person's script; and what a decision has announced.
OTHERS = {"train.py"}


@pytest.mark.parametrize("page", PAGES)
def test_every_module_that_is_named_is_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    there = [path.relative_to(ROOT).as_posix() for path in modules_of_the_checkout()]
    for name in set(re.findall(r"`([\w./-]*\w\.py)`", text)) - OTHERS:
        is_made_up = "NAME" in name or name.startswith("./")
        assert is_made_up or any(f"/{file}".endswith(f"/{name}") for file in there), name


@functools.cache
def modules_of_the_checkout() -> list[Path]:
    tops = ("boxcar", "onbox", "tests", "examples", "bench")
    return [*ROOT.glob("*.py"), *(path for top in tops for path in (ROOT / top).rglob("*.py"))]


def test_each_format_names_the_module_that_has_it():
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    headings = re.findall(r"^###? [a-z][\w -]* — (.*)$", text, re.MULTILINE)
    named = [name for line in headings for name in re.findall(r"`([\w/]+(?:\.py|/))`", line)]
    assert len(headings) >= 24 and len(named) >= len(headings)
    for name in named:
        assert (ROOT / "boxcar" / name).exists(), name


@pytest.mark.parametrize("page", [page for page in PAGES if page.endswith(".zh.md")])
def test_a_chinese_page_and_its_english_one_link_to_each_other(page):
    english = page.removesuffix(".zh.md") + ".md"
    assert Path(page).name in links(english) and Path(english).name in links(page)


def test_the_pages_that_are_read_first_are_in_chinese_too():
    names = ("README", *(f"docs/{name}" for name in ("first-steps", "autodl", "job", "notify")))
    assert {f"{name}.zh.md" for name in names} <= set(PAGES)


# Most words of a sentence in what people read first; decisions are history.
MOST_WORDS = 30
PROSE = [page for page in PAGES if re.fullmatch(r"README\.md|docs/[^/.]+\.md", page)]


def sentences(text: str) -> list[str]:
    """Those of paragraphs, points and cells of tables. Code and links count as a word."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]*`", "code", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text))
    parts = re.split(r"\n\s*(?:[-*|#]|\d+\.)\s|\n\s*\n|\s\|\s|<br>", text)
    return [one for part in parts for one in re.split(r"(?<=[.!?])\**\s+", part.strip())]


@pytest.mark.parametrize("page", PROSE)
def test_no_sentence_is_longer_than_thirty_words(page):
    """Else: two sentences say it better."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [one for one in sentences(text) if len(one.split()) > MOST_WORDS] == []


def test_sentences_are_told_apart():
    text = "One. Two `a b`!\n\n- Three\n| four | [five](six) |"
    assert sentences(text) == ["One.", "Two code!", "Three", "four", "five |"]


def _page_of_verbs() -> str:
    text = (ROOT / "docs" / "verbs.md").read_text(encoding="utf-8")
    return text[: text.index("Common flags")]


def test_no_page_installs_the_package_of_somebody_else():
    """`boxcar` on the package index is another project; ours is called boxcar-run."""
    wrong = re.compile(
        r"(?:pip|pipx|uv tool|uv pip) (?:install|inject) (?:-\S+ )*[\"']?boxcar(?![-\w/])"
    )
    pages = [ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [page.name for page in pages if wrong.search(page.read_text(encoding="utf-8"))]
    assert found == []
    assert wrong.search("type pip install boxcar now") and not wrong.search(
        "pip install boxcar-run"
    )
