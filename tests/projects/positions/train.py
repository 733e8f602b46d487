"""Everything by its position: CONFIG TASK STEPS OUT."""

import json
import sys
from pathlib import Path

import pace

config_path, task, steps, out = sys.argv[1:]
config = json.loads(Path(config_path).read_text())
out = Path(out)
latest = out / "latest.json"
first = json.loads(latest.read_text())["step"] if latest.exists() else 0
print("start at", first)
for step in range(first + 1, int(steps) + 1):
    pace.step(step)
    new = out / "latest.json.new"
    new.write_text(json.dumps({"step": step}))
    new.replace(latest)
(out / "model.json").write_text(json.dumps([config["lr"] * n for n in range(9)]))
(out / "metrics.json").write_text(json.dumps({"lr": config["lr"], "steps": steps, "task": task}))
