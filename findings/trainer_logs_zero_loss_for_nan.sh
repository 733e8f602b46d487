#!/usr/bin/env bash
# What transformers' Trainer logs where every loss is NaN, without Boxcar.
#
# Seen on 2026-11-28 with transformers 5.24.0 (accelerate 1.15.0, torch 2.13.0, no GPU, Python 3.11, Linux).
# Ends with 1 if any of it is otherwise now. What Boxcar makes of it: docs/job.md, metrics.
#
# - The loss of each step is NaN, and so is the weight after the first. The log and log_history say 0,
#   because logging_nan_inf_filter, which is on, takes the mean of the losses before, and there are none.
# - It trains on, and ends with 0. grad_norm says nan.
# - With logging_nan_inf_filter=False the loss is logged as nan.
#
# Takes Python 3.10 or newer as PYTHON, and 1 GB in a temporary folder; more than that where TORCH_INDEX does
# not name an index of torch's builds for the CPU (https://download.pytorch.org/whl/cpu).
set -euo pipefail
python="${PYTHON:-python3}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

"$python" -m venv "$folder/env"
pip=("$folder/env/bin/python" -m pip install --quiet --disable-pip-version-check)
"${pip[@]}" torch==2.13.0 ${TORCH_INDEX:+--index-url "$TORCH_INDEX"}
"${pip[@]}" accelerate==1.15.0 transformers==5.24.0
export HOME="$folder"
cd "$folder"

cat >train.py <<'PY'
import sys, torch
from transformers import Trainer, TrainingArguments

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, x=None, labels=None):
        return {"loss": (self.weight * float("nan")).sum(), "logits": x}

rows = [{"x": torch.zeros(1), "labels": torch.zeros(1)} for _ in range(4)]
arguments = TrainingArguments(
    "out", max_steps=3, logging_steps=1, report_to=[], use_cpu=True, save_strategy="no",
    per_device_train_batch_size=1, logging_nan_inf_filter=sys.argv[1] == "on",
)
trainer = Trainer(Net(), arguments, train_dataset=rows)
trainer.train()
losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
norms = [row["grad_norm"] for row in trainer.state.log_history if "grad_norm" in row]
with open("seen", "w") as file:
    print(losses, norms, trainer.model.weight.item(), file=file)
PY

faults=0
expect() { # WHAT EXPECTED FOUND
  if [ "$2" = "$3" ]; then
    printf 'as seen before: %s: %s\n' "$1" "$3"
  else
    printf 'OTHERWISE NOW: %s: %s, was %s\n' "$1" "$3" "$2"
    faults=1
  fi
}

"$folder/env/bin/python" train.py on >log 2>&1 && rc=0 || rc=$?
expect 'its exit code' 0 "$rc"
expect 'losses, norms and the weight' '[0.0, 0.0, 0.0] [nan, nan, nan] nan' "$(cat seen)"
expect 'lines of the log with a loss of 0' 3 "$(grep -o "'loss': '0'" log | wc -l)"
"$folder/env/bin/python" train.py off >log 2>&1 && rc=0 || rc=$?
expect 'without the filter' '[nan, nan, nan] [nan, nan, nan] nan' "$(cat seen)"
exit "$faults"
