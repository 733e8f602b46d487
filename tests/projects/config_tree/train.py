"""As the templates for Hydra have it: a config tree, overrides on the command line."""

import json
from pathlib import Path

import hydra
import pace


@hydra.main(version_base="1.3", config_path="conf", config_name="train")
def main(cfg):
    out = Path(cfg.paths.output_dir)
    first = 0
    if cfg.get("ckpt_path"):
        first = json.loads(Path(cfg.ckpt_path).read_text())["step"]
    print("start at", first)
    (out / "checkpoints").mkdir(parents=True, exist_ok=True)
    for step in range(first + 1, cfg.trainer.max_steps + 1):
        pace.step(step)
        new = out / "checkpoints" / ".new"
        new.write_text(json.dumps({"step": step}))
        new.replace(out / "checkpoints" / f"step_{step}.json")
    (out / "model.json").write_text(json.dumps([cfg.model.lr] * 9))
    metrics = {"lr": cfg.model.lr, "steps": cfg.trainer.max_steps}
    (out / "metrics.json").write_text(json.dumps(metrics))


main()
