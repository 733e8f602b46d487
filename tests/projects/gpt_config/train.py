"""As nanoGPT: settings are globals, which a config in Python changes, and then --key=value."""

import json
import os
import sys
from ast import literal_eval

import pace

out_dir = "out"
init_from = "scratch"
max_iters = 12
learning_rate = 6e-4
for arg in sys.argv[1:]:
    if "=" not in arg:
        assert not arg.startswith("--")
        exec(open(arg).read())
    else:
        assert arg.startswith("--")
        key, val = arg[2:].split("=", 1)
        if key not in globals():
            raise ValueError(f"Unknown config key: {key}")
        try:
            val = literal_eval(val)
        except (SyntaxError, ValueError):
            pass
        globals()[key] = val

os.makedirs(out_dir, exist_ok=True)
ckpt_path = os.path.join(out_dir, "ckpt.json")
first = 0
if init_from == "resume":
    with open(ckpt_path) as file:  # as there: it breaks where there is none
        first = json.load(file)["iter_num"]
print("start at", first)
for iter_num in range(first + 1, max_iters + 1):
    pace.step(iter_num)
    with open(ckpt_path + ".new", "w") as file:
        json.dump({"iter_num": iter_num, "learning_rate": learning_rate}, file)
    os.replace(ckpt_path + ".new", ckpt_path)
with open(os.path.join(out_dir, "metrics.json"), "w") as file:
    json.dump({"lr": learning_rate, "steps": max_iters}, file)
