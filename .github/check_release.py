"""Whether a tag may become a release: it is the version, and [project.urls] has the addresses."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("Source", "Documentation")


def problems(tag: str, root: Path = ROOT) -> list[str]:
    init = (root / "boxcar" / "__init__.py").read_text("utf-8")
    version = re.findall(r'^__version__ = "(.+)"$', init, re.MULTILINE)[0]
    project = (root / "pyproject.toml").read_text("utf-8")
    section = project.partition("\n[project.urls]\n")[2].partition("\n[")[0]
    urls = dict(re.findall(r'^(\w+) = "(https://[^"]+)"$', section, re.MULTILINE))
    wrong = [] if tag == f"v{version}" else [f"the tag is {tag}, and the version {version}"]
    return wrong + [f"[project.urls] has no {name}" for name in NEEDED if name not in urls]


if __name__ == "__main__":
    sys.exit("\n".join(problems(sys.argv[1])) or None)
