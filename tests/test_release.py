"""A release: its tag is the version, it has addresses, and its workflow names what exists."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import boxcar

ROOT = Path(__file__).resolve().parents[1]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"


def problems(tag: str, root: Path) -> list[str]:
    path = ROOT / ".github" / "check_release.py"
    spec = importlib.util.spec_from_file_location("check_release", path)
    assert spec and spec.loader
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.problems(tag, root))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """With the addresses that a release needs."""
    (tmp_path / "boxcar").mkdir()
    (tmp_path / "boxcar" / "__init__.py").write_text(f'__version__ = "{boxcar.__version__}"\n')
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    urls = 'Source = "https://host/us/it"\nDocumentation = "https://host/docs"\n'
    text = re.sub(r"(?<=\n\[project\.urls\]\n)(?:\w+ = .*\n)*", urls, text)
    (tmp_path / "pyproject.toml").write_text(text)
    return tmp_path


def test_the_version_with_its_addresses_may_be_released(checkout: Path) -> None:
    assert problems(f"v{boxcar.__version__}", checkout) == []


def test_another_tag_is_refused(checkout: Path) -> None:
    assert problems("v9.9.9", checkout) == [
        f"the tag is v9.9.9, and the version {boxcar.__version__}"
    ]


def test_without_an_address_nothing_is_released(checkout: Path) -> None:
    file = checkout / "pyproject.toml"
    file.write_text(file.read_text().replace('Source = "https://host/us/it"\n', ""))
    assert problems(f"v{boxcar.__version__}", checkout) == ["[project.urls] has no Source"]


def test_the_workflow_names_what_exists_and_keeps_no_token() -> None:
    text = WORKFLOW.read_text("utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    for path in re.findall(r"(?:bash|python) (\.\S+)", text):
        assert (ROOT / path).exists(), path
    assert {name for job in jobs.values() for name in _needed(job)} <= set(jobs)
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in text and "password" not in text


def test_it_is_installed_on_each_python_that_the_metadata_names() -> None:
    tried = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]["install"]["strategy"]["matrix"]
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8"))
    assert tried["python"] == named


def _needed(job: dict[str, Any]) -> list[str]:
    needs = job.get("needs", [])
    return [needs] if isinstance(needs, str) else needs


def test_the_docs_site_has_each_page_in_its_navigation() -> None:
    """Those of decisions and of JSON are reached from their own tables."""
    nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    pages = {path.name for path in (ROOT / "docs").glob("*.md") if "." not in path.stem}
    assert pages - {*re.findall(r"[\w-]+\.md", nav)} == set()
