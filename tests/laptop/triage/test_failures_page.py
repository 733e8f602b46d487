from __future__ import annotations

import os
from pathlib import Path

from boxcar.laptop.triage.failures_file import page
from boxcar.shared.triage.signatures.agents_own import AGENTS_OWN
from boxcar.shared.triage.signatures.all_rows import SIGNATURES

PAGE = Path(__file__).parents[3] / "docs" / "failures.md"


def test_the_page_of_failures_is_made_from_the_rows_as_they_are() -> None:
    if os.environ.get("BOXCAR_GOLDEN") == "write":
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


def test_each_row_has_its_place_on_the_page_that_explain_links_to() -> None:
    assert all(f'<a id="{row.id}"></a>' in page() for row in SIGNATURES)


def test_no_two_failures_share_an_id_by_which_they_are_explained() -> None:
    ids = [row.id for row in (*SIGNATURES, *AGENTS_OWN)]
    assert [id for id in ids if ids.count(id) > 1] == []


def test_the_id_of_a_script_error_is_found_on_the_page() -> None:
    assert '<a id="PY"></a>PY, EXIT1' in page()
