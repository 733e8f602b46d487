"""Runs the tests that failed once more, each alone: `python tests/again.py EXIT_CODE`.

Called by `make test` with what pytest returned. Ends with 0 where every one of them passes now, and
names them; else with 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FAILED = Path(".pytest_cache/v/cache/lastfailed")
MOST = 3
TESTS_FAILED = 1  # pytest's exit code; others mean that the run itself went wrong


def main(exit_code: int) -> int:
    if exit_code != TESTS_FAILED:
        return exit_code
    failed = list(json.loads(FAILED.read_text(encoding="utf-8")))
    if not 0 < len(failed) <= MOST:
        return 1
    if any(not passes_alone(test) for test in failed):
        return 1
    for test in failed:
        print(f"FLAKY {test}: failed beside others, passed alone. It is a defect all the same.")
    return 0


def passes_alone(test: str) -> bool:
    print(f"once more, alone: {test}", flush=True)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", test]
    return subprocess.run(command, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
