"""What job.yaml may say, as a JSON Schema made from its models: editors complete and check with it.

It refuses nothing that Boxcar takes; what only `plan` sees, such as a file that is missing, it
lets pass.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

import boxcar
from boxcar.laptop.common import home
from boxcar.laptop.project.job import Job
from boxcar.shared.disk import atomic

_MAKER = f"made by boxcar {boxcar.__version__}"
# Each scalar is read as the text that was typed, whatever YAML makes of it.
_TYPED = ["string", "number", "boolean"]
# A row of the table of all keys: the key, its default, what it says.
_ROW = re.compile(r"^\| `(\w+)` \|(?: .*?)? \| (.*) \|$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def job_schema(language: str) -> dict[str, Any]:
    """With what docs/job.md says of each key, in en or zh."""
    made = Job.model_json_schema(schema_generator=_AsTyped)
    job = _without_words(made)
    kinds = job.pop("$defs")
    kinds["Metric"]["properties"]["json"] = kinds["Metric"]["properties"].pop("json_")
    for key, text in _said_of_keys(language).items():
        job["properties"][key]["description"] = text
    job["required"] = ["name", "command", "artifacts"]
    ways = [{"required": ["queues"]}, {"required": ["run"]}]
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": _MAKER,
        **job,
        "anyOf": ways,
        "$defs": kinds,
    }


def write_job_schema(root: Path, language: str) -> None:
    """Where home.SCHEMA_COMMENT names it, unless this version's is there. A folder that cannot be
    written is no reason to end a verb.
    """
    path = home.Home(root).job_schema
    with contextlib.suppress(OSError):
        if not (path.exists() and _MAKER.encode() in path.read_bytes()):
            atomic.make_folder(path.parent)
            text = json.dumps(job_schema(language), indent=1, ensure_ascii=False)
            atomic.write_whole(path, text.encode() + b"\n")


class _AsTyped(GenerateJsonSchema):
    """What a person may type, and not what is made of it."""

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        return {"type": _TYPED}

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return {"type": _TYPED}  # a record is made of a text, as `24GB..` is

    def function_before_schema(
        self, schema: core_schema.BeforeValidatorFunctionSchema
    ) -> JsonSchemaValue:
        """Something shorter is taken, too: one text for a list of one, a list for a mapping."""
        made = self.generate_inner(schema["schema"])
        if schema["schema"]["type"] == "model-fields":
            return made
        shorter = [*_TYPED, "array"] if made.get("type") == "object" else _TYPED
        return {"anyOf": [made, {"type": shorter}]}


def _said_of_keys(language: str) -> dict[str, str]:
    page = home.assets_root() / "docs" / ("job.zh.md" if language == "zh" else "job.md")
    text = _all_keys(page)
    return {key: _LINK.sub(r"\1", said).replace(r"\|", "|") for key, said in _ROW.findall(text)}


def _all_keys(page: Path) -> str:
    """The first table of the page that begins with `name`."""
    text = page.read_text(encoding="utf-8")
    return text[text.index("\n| `name` |") :].partition("\n\n")[0]


def _without_words(schema: Any) -> Any:
    """Without what pydantic says of our classes; a key of a job may have the same name."""
    if isinstance(schema, list):
        return [_without_words(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if not _is_word(key, value)}
    return {key: _without_words(value) for key, value in kept.items()}


def _is_word(key: str, value: object) -> bool:
    return key == "default" or (key in ("title", "description") and isinstance(value, str))
