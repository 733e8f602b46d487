import argparse
import json
import signal
import sys
import time
from pathlib import Path

parser = argparse.ArgumentParser()
for name in ("config", "task", "epochs", "out"):
    parser.add_argument("--" + name, required=True)
asked = parser.parse_args()
config, out = json.loads(Path(asked.config).read_text()), Path(asked.out)
latest, told = out / "latest.json", []
signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
step = json.loads(latest.read_text())["step"] if latest.exists() else 0


def save(path, record):
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(record))
    new.replace(path)


with (out / "history.txt").open("a") as history:
    print("start", step, file=history, flush=True)
    while step < int(asked.epochs):
        time.sleep(config.get("seconds", 0))
        step += 1
        print("step", step, file=history, flush=True)
        save(latest, {"step": step})
        with (out / "progress.jsonl").open("a") as progress:
            print(json.dumps({"step": step}), file=progress)
        while step == config.get("hold_at") and not Path(config["until"]).exists() and not told:
            time.sleep(0.02)
        if told:
            sys.exit(85)
print("trained", asked.config, asked.task, flush=True)
if exit_code := config.get("exit_code"):
    sys.exit(exit_code)
save(out / "model.json", {"weights": [config.get("x", 1) * n for n in range(50)], "steps": step})
save(out / "metrics.json", {"score": step + 0.5, "task": asked.task, "x": config.get("x", 1)})
