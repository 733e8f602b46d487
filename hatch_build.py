"""The build compiles the Chinese of boxcar/shared/zh.po, for a wheel and for an editable install,
and gives the README the addresses that its links need on an index.

`python hatch_build.py` first brings zh.po in step with the sentences of the code (`make words`).
"""

from __future__ import annotations

import ast
import io
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

HERE = Path(__file__).resolve().parent
PO = Path("boxcar/shared/zh.po")
# Where each sentence is compiled to, by the file that says it: a box carries its own alone.
MO = {
    Path("boxcar/shared/zh.mo"): ("boxcar/shared/", "onbox/"),
    Path("boxcar/zh.mo"): ("boxcar/",),
}
# Functions whose first argument is a template: boxcar/shared/sentence.py.
COLLECTED = ("_", "mark")
# What travels to a box comes first, so that a sentence of both sides counts as its own.
FOLDERS = ("boxcar/shared", "onbox", "boxcar")
# A link in Markdown that an index, which has the README alone, cannot follow.
RELATIVE = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")
# Both files change with their sentences alone.
_ANY_DATE = datetime(2026, 1, 1, tzinfo=timezone.utc)


class BuildHook(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        for path, data in compiled(Path(self.root)).items():
            (Path(self.root) / path).write_bytes(data)
            build_data["artifacts"].append(f"/{path}")
        if self.target_name == "wheel" and version != "editable":
            # What `boxcar explain notify` shows; a picture or a decision is not among it.
            for page in sorted((Path(self.root) / "docs").glob("*.md")):
                build_data["force_include"][str(page)] = f"boxcar/assets/docs/{page.name}"


class MetadataHook(MetadataHookInterface):  # type: ignore[type-arg,misc]
    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata["urls"].get("Source", "")
        text = readme_for_index(text, source, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def readme_for_index(text: str, source: str, version: str) -> str:
    """Its relative links lead to this version's files at `source`; as they are where that is ''."""

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link[1].endswith((".svg", ".png")) else "blob"
        return f"]({source.rstrip('/')}/{kind}/v{version}/{link[1]})"

    return RELATIVE.sub(absolute, text) if source else text


def read(root: Path) -> Catalog:
    with (root / PO).open("rb") as file:
        catalog = read_po(file, locale="zh_CN")
    catalog.creation_date = catalog.revision_date = _ANY_DATE
    return catalog


def compiled(root: Path) -> dict[Path, bytes]:
    """The same bytes for the same sentences: the agent's file is named by its digest."""
    made = {path: Catalog(locale="zh_CN", creation_date=_ANY_DATE, fuzzy=False) for path in MO}
    for message in read(root):
        if message.id:
            file = message.locations[0][0]
            path = next(path for path, folders in MO.items() if file.startswith(folders))
            made[path].add(message.id, message.string)
    return {path: _bytes_of(catalog) for path, catalog in made.items()}


def _bytes_of(catalog: Catalog) -> bytes:
    written = io.BytesIO()
    write_mo(written, catalog)
    return written.getvalue()


def extracted(root: Path) -> dict[str, str]:
    """Each template in the code, and the first file that says it, in the order of the files."""
    found: dict[str, str] = {}
    for path in (path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))):
        for template in templates(path.read_text(encoding="utf-8")):
            found.setdefault(template, path.relative_to(root).as_posix())
    return found


def templates(source: str) -> list[str]:
    """Those of one file, in their order."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    firsts = [
        call.args[0]
        for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset))
        if isinstance(call.func, ast.Name) and call.func.id in COLLECTED and call.args
    ]
    return [str(one.value) for one in firsts if isinstance(one, ast.Constant)]


def in_step(root: Path) -> Catalog:
    """The catalogue with the code's templates and no others; a new one has no Chinese yet."""
    known = {message.id: message.string for message in read(root) if message.id}
    catalog = Catalog(
        locale="zh_CN",
        project="Boxcar",
        version="-",
        header_comment="# The Chinese of what Boxcar says; `make words` brings it in step with it.",
        creation_date=_ANY_DATE,
        revision_date=_ANY_DATE,
        fuzzy=False,
    )
    for template, file in extracted(root).items():
        catalog.add(template, known.get(template, ""), locations=[(file, 0)])
    return catalog


def main() -> None:
    catalog = in_step(HERE)
    with (HERE / PO).open("wb") as file:
        write_po(file, catalog, width=0, include_lineno=False)
    for path, data in compiled(HERE).items():
        (HERE / path).write_bytes(data)
    left = [str(message.id) for message in catalog if message.id and not message.string]
    print(f"{PO}: {len(catalog)} sentences, {len(left)} without Chinese")
    for template in left:
        print(f"  {template}")


if __name__ == "__main__":
    main()
