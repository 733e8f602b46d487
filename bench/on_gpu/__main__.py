"""`python3 -m bench.on_gpu [--dry] [--json FILE]`: all that only a GPU can show, in six minutes.

`make gpu` is this. No network; a machine with torch and one GPU. What the machine lacks travels as
wheels: a folder `.whl` in the checkout is unpacked first (fill it by `pip download --no-deps -d
.whl`). Each part runs in a process of its own and has a limit; one that fails is a row with its
reason, and the others go on. `--dry` runs every part on the CPU, to try this where no GPU is.
`--page` writes the figures into docs/performance.md, `--none` writes what was not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FORMAT = "boxcar.gpu/1"
HERE = Path(__file__).parents[2]
WHEELS = HERE / ".whl"
MEASURED = HERE / "bench/on_gpu/measured.json"
ALL_S = 345.0
# In this order, so that what is worth most comes first; the seconds that each may take, and what it
# is called where it gave nothing.
PARTS = {
    "training_on_gpu": (60, "what the layer adds to a step"),
    "stalls": (50, "save(), and a step's stall by save_async()"),
    "resumes": (60, "a kill, and SIGTERM in the middle of a save, resumed to the bit"),
    "triage": (60, "triage of a real CUDA out of memory, an illegal access and a NaN"),
    "runs": (80, "audit, gauges, and two cells on one card"),
    "precision": (60, "a step in fp32, in bf16, and compiled"),
    "cache": (40, "latents through pinned memory"),
    "tests": (110, "tests marked gpu"),
}
DRY = "BOXCAR_GPU_DRY"


def main() -> int:
    words = _words()
    if words.one:
        return _measure(words.one, Path(words.to))
    if words.page:
        from bench.on_gpu import gpu_page

        return gpu_page.write(json.loads(MEASURED.read_text()))
    if words.none:
        parts = {name: _reason(name, "not measured") for name in PARTS}
    else:
        parts = _run_all(is_dry=words.dry)
    document = {"format": FORMAT, "is_dry": words.dry, "machine": _machine(), "parts": parts}
    text = json.dumps(document, indent=1) + "\n"
    if words.json:
        Path(words.json).write_text(text)
    else:
        print(text, end="")
    failed = [row["what"] for part in parts.values() for row in part["rows"] if row["reason"]]
    print(f"{len(failed)} rows without a value: {', '.join(failed) or 'none'}", file=sys.stderr)
    return 0


def _words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m bench.on_gpu")
    parser.add_argument("--json", help="write the figures into this file")
    parser.add_argument("--dry", action="store_true", help="every part on the CPU")
    parser.add_argument("--none", action="store_true", help="run nothing: rows 'not measured'")
    parser.add_argument("--page", action="store_true", help="write docs/performance.md")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--to", help=argparse.SUPPRESS)
    return parser.parse_args()


def _run_all(*, is_dry: bool) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="boxcar-gpu-") as folder:
        env = _environment(Path(folder), is_dry=is_dry)
        ends_s = time.monotonic() + ALL_S
        for name, (most_s, _) in PARTS.items():
            left_s = min(most_s, ends_s - time.monotonic())
            if left_s < 5:
                parts[name] = _reason(name, "no time was left")
                continue
            print(f"{name} …", file=sys.stderr, flush=True)
            parts[name] = _run(name, left_s, Path(folder, name), env)
    return parts


def _environment(folder: Path, *, is_dry: bool) -> dict[str, str]:
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "BOXCAR_OUT": str(folder)}
    paths = [str(HERE)]
    wheels = [str(path) for path in WHEELS.glob("*.whl")] if WHEELS.is_dir() else []
    if wheels:
        site = str(folder / "site")
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
        command += ["--no-compile", "--target", site, *wheels]
        subprocess.run(command, check=True)
        paths.append(site)
    env["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [env.get("PYTHONPATH")])])
    if is_dry:
        env |= {DRY: "1", "CUDA_VISIBLE_DEVICES": ""}
    return env


def _run(name: str, limit_s: float, folder: Path, env: dict[str, str]) -> dict[str, Any]:
    folder.mkdir()
    to, log = folder / "rows.json", folder / "log"
    command = [sys.executable, "-m", "bench.on_gpu", "--one", name, "--to", str(to)]
    began_s = time.monotonic()
    with log.open("wb") as file:
        part = subprocess.Popen(
            command, cwd=folder, env=env, stdout=file, stderr=file, start_new_session=True
        )
        try:
            code: int | None = part.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
            os.killpg(part.pid, 9)
            part.wait()
    took_s = round(time.monotonic() - began_s, 1)
    if to.exists():
        rows = json.loads(to.read_text())
        if code is None:
            rows += _reason(name, f"took longer than {limit_s:.0f} s")["rows"]
        return {"took_s": took_s, "rows": rows}
    said = log.read_text(errors="replace").strip().splitlines() or [f"exit code {code}"]
    why = said[-1][:200] if code is not None else f"took longer than {limit_s:.0f} s"
    return {**_reason(name, why), "took_s": took_s}


def _measure(name: str, to: Path) -> int:
    from bench.on_gpu import gpu_parts

    rows: list[dict[str, Any]] = []
    # Written after each row: what a part has found stays if it fails later.
    for row in gpu_parts.PARTS[name](to.parent):
        rows.append(row.document)
        to.with_suffix(".new").write_text(json.dumps(rows))
        to.with_suffix(".new").replace(to)
    return 0


def _reason(name: str, reason: str) -> dict[str, Any]:
    what = PARTS[name][1] if name in PARTS else name
    row = {"what": what, "value": 0.0, "unit": "", "peer": None, "peer_name": "", "ratio": None}
    return {"took_s": None, "rows": [{**row, "most_ratio": None, "reason": reason}]}


def _machine() -> dict[str, Any]:
    """What was measured on; the card's name as the driver says it."""
    found: dict[str, Any] = {"python": sys.version.split()[0], "cores": os.cpu_count()}
    try:
        import torch
    except ImportError:
        return found
    found["torch"] = torch.__version__
    if torch.cuda.is_available():
        card = torch.cuda.get_device_properties(0)
        found |= {"gpu": card.name, "gpu_bytes": card.total_memory, "cuda": torch.version.cuda}
    return found


if __name__ == "__main__":
    sys.exit(main())
