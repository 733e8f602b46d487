"""Holds tests/data/providers/contract.yaml against the providers' published OpenAPI files.

    BOXCAR_OPENAPI=FOLDER .venv/bin/python tests/check_contract.py

FOLDER holds vast.yaml, runpod-v2.yaml and lambda.yaml as they are published; they are no part of
the project. Ends with 1 for whatever is not in them any more.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

CONTRACT = Path(__file__).parent / "data" / "providers" / "contract.yaml"


def differences(ours: Mapping[str, Any], published: Mapping[str, Any]) -> Iterator[str]:
    for name, call in ours["calls"].items():
        if call.get("client_only"):
            continue
        operation = published["paths"].get(call["path"], {}).get(call["method"].lower())
        if operation is None:
            yield f"{name}: no {call['method']} {call['path']}"
            continue
        asked = {one.get("name") or _ref(published, one).get("name")
                 for one in operation.get("parameters", ())}  # fmt: skip
        yield from (f"{name}: ?{one} is not published" for one in call.get("asks", ())
                    if one not in asked)  # fmt: skip
        sends = _fields(published, _body(operation.get("requestBody", {})))
        yield from _unlike(name, "sends", call.get("sends", {}), sends)
        good = next((operation["responses"][code] for code in ("200", "201")
                     if code in operation["responses"]), {})  # fmt: skip
        answers = _fields(published, _body(_ref(published, good)))
        yield from _unlike(name, "answers", call.get("answers", {}), answers)
        if call.get("each"):
            yield from _unlike(name, "each", call["each"], _each(published, call, answers))


def _each(published: Any, call: Any, answers: Mapping[str, Any]) -> dict[str, Any]:
    wrapped = next(key for key, kind in call["answers"].items() if kind == "array")
    items = _ref(published, answers.get(wrapped, {})).get("items", {})
    return _fields(published, items)


def _unlike(
    name: str, what: str, ours: Mapping[str, str], theirs: Mapping[str, Any]
) -> Iterator[str]:
    for field, kind in ours.items():
        if field not in theirs:
            yield f"{name} {what}: {field} is not published"
        elif kind != "any" and (found := _kinds(theirs[field])) and kind not in found:
            yield f"{name} {what}: {field} is {'/'.join(sorted(found))}, not {kind}"


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    kind = schema.get("type", ())
    found = {kind} if isinstance(kind, str) else {*kind}
    return (found | ({"integer"} if "number" in found else set())) - {"null"}


def _fields(published: Any, schema: Any) -> dict[str, Any]:
    """The fields of an object with those of all that it is made of."""
    schema = _ref(published, schema)
    found: dict[str, Any] = {}
    for part in (*schema.get("allOf", ()), *schema.get("anyOf", ()), *schema.get("oneOf", ())):
        found |= _fields(published, part)
    found |= {key: _ref(published, one) for key, one in schema.get("properties", {}).items()}
    return found


def _ref(published: Any, node: Any) -> Any:
    while "$ref" in node:
        found = published
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    if "type" not in node and len(node.get("allOf", ())) == 1 and "properties" not in node:
        return _ref(published, node["allOf"][0])
    return node


def _body(node: Mapping[str, Any]) -> Any:
    content = node.get("content", {})
    return next(iter(content.values()), {}).get("schema", {})


def main() -> int:
    folder = os.environ.get("BOXCAR_OPENAPI")
    if not folder:
        print("set BOXCAR_OPENAPI to the folder of the published files", file=sys.stderr)
        return 2
    code = 0
    for name, ours in yaml.safe_load(CONTRACT.read_text()).items():
        published = yaml.safe_load((Path(folder) / ours["file"]).read_text())
        found = list(differences(ours, published))
        for line in found:
            print(f"{name}: {line}")
        print(f"{name}: {len(ours['calls'])} calls, {len(found)} differences")
        code |= bool(found)
    return code


if __name__ == "__main__":
    sys.exit(main())
