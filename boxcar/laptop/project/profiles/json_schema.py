"""docs/profile.schema.json, made from the models: editors complete and check a profile with it.

Write it anew: python -m boxcar.laptop.project.profiles.json_schema > docs/profile.schema.json
"""

from __future__ import annotations

import json
import sys
from typing import Any

from boxcar.laptop.project.profiles.schema import ProfileModel


def json_schema() -> str:
    """The schema as text. Nothing is required of a profile that extends another one."""
    whole = ProfileModel.model_json_schema()
    part = ProfileModel.model_json_schema(ref_template="#/$defs/some-of-{model}")
    parts = {f"some-of-{name}": _without_required(item) for name, item in part["$defs"].items()}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A Boxcar profile, profiles/NAME.yaml",
        "if": {"required": ["extends"]},
        "then": _without_required({key: part[key] for key in part if key != "$defs"}),
        "else": {key: whole[key] for key in whole if key != "$defs"},
        "$defs": whole["$defs"] | parts,
    }
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def _without_required(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_required(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _without_required(value) for key, value in schema.items() if key != "required"}


if __name__ == "__main__":
    sys.stdout.write(json_schema())
