"""A page of HTML from its template, in the look that all pages of Boxcar share.

Autoescape is on; only charts, whose text is escaped where they are drawn, pass as they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2

_LOOK = Path(__file__).parent / "look.css"


def html(template: Path, **values: Any) -> str:
    """The whole text. The template finds the shared look as `css`; a name that it asks for and does
    not get is an error.
    """
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    css = _LOOK.read_text(encoding="utf-8")
    return environment.from_string(template.read_text(encoding="utf-8")).render(css=css, **values)
