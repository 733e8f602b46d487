"""The child that looks for a person's expressions in a log, each within a second of CPU.

stdin: `{"patterns": [...], "log": "..."}`. stdout, one JSON object a line for each pattern:
`{"line": 0, "text": "..."}` for the last line in which it is found, else `{"none": true}`.
"""

from __future__ import annotations

import json
import re
import sys

from boxcar.shared.process import bounded_child

CPU_S = 1.0
_MEMORY_BYTES = 1024**3
_LONGEST_LINE = 2000
_LONGEST_QUOTE = 300


def main() -> None:
    bounded_child.limit_memory(_MEMORY_BYTES)
    asked = json.load(sys.stdin)
    lines = [line[:_LONGEST_LINE] for line in asked["log"].split("\n")]
    for pattern in asked["patterns"]:
        bounded_child.limit_time(CPU_S)
        print(json.dumps(_answer(pattern, lines)), flush=True)


def _answer(pattern: str, lines: list[str]) -> dict[str, object]:
    try:
        expression = re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return {"none": True}
    for number in range(len(lines) - 1, -1, -1):
        if expression.search(lines[number]):
            return {"line": number, "text": lines[number].strip()[:_LONGEST_QUOTE]}
    return {"none": True}


if __name__ == "__main__":
    main()
