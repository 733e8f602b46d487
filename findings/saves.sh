#!/usr/bin/env bash
# What is left of a save, and what goes on from it, without Boxcar.
#
# Seen on 2026-11-28 with mmengine 0.10.7 and torch 2.14.1 (onnx 1.23.2, onnxscript 0.7.2; no GPU,
# Python 3.11, Linux). Ends with 1 if any of it is otherwise now.
#
# - mmengine, told to resume and not from where, reads the file last_checkpoint alone: with epoch_2.pth
#   in the folder and that file gone it begins at the first epoch, and ends with 0.
# - torch.onnx.export of a small model leaves an empty model.onnx.data beside a model.onnx that names
#   no external data.
#
# Takes Python 3.10 or newer as PYTHON, and 1 GB in a temporary folder; more than that where TORCH_INDEX does
# not name an index of torch's builds for the CPU (https://download.pytorch.org/whl/cpu).
set -euo pipefail
python="${PYTHON:-python3}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

"$python" -m venv "$folder/env"
pip=("$folder/env/bin/python" -m pip install --quiet --disable-pip-version-check)
"${pip[@]}" torch==2.14.1 ${TORCH_INDEX:+--index-url "$TORCH_INDEX"}
"${pip[@]}" mmengine==0.10.7 'setuptools<81' onnx==1.23.2 onnxscript==0.7.2
export PATH="$folder/env/bin:$PATH" HOME="$folder" TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1
cd "$folder"

faults=0
expect() { # WHAT EXPECTED FOUND
  if [ "$2" = "$3" ]; then
    printf 'as seen before: %s: %s\n' "$1" "$3"
  else
    printf 'OTHERWISE NOW: %s: %s, was %s\n' "$1" "$3" "$2"
    faults=1
  fi
}

cat >train.py <<'PY'
import sys
import torch
from mmengine.model import BaseModel
from mmengine.runner import Runner

class Net(BaseModel):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(2, 1)

    def forward(self, x, mode):
        return {"loss": self.net(x).sum()}

data = torch.utils.data.DataLoader([{"x": torch.ones(2)}] * 4, batch_size=2)
Runner(
    Net(), "out", data, train_cfg={"by_epoch": True, "max_epochs": int(sys.argv[1])},
    optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.1}}, resume=True,
    default_hooks={"logger": {"type": "LoggerHook", "interval": 1}},
).train()
PY
first_epoch() { grep -o 'Epoch(train) *\[[0-9]*\]' "$1" | head -n 1 | grep -o '[0-9]*'; }
python train.py 2 >first.log 2>&1
python train.py 3 >second.log 2>&1
expect 'mmengine resumes after epoch 2 at' 3 "$(first_epoch second.log)"
rm out/last_checkpoint
rc=0; python train.py 4 >third.log 2>&1 || rc=$?
expect 'its exit code without last_checkpoint' 0 "$rc"
expect 'and its first epoch beside epoch_3.pth' 1 "$(first_epoch third.log)"

python - >onnx.log 2>&1 <<'PY'
import torch
torch.onnx.export(torch.nn.Linear(3, 2), (torch.ones(1, 3),), "model.onnx", verbose=False)
PY
expect 'bytes in model.onnx.data' 0 "$(stat -c %s model.onnx.data)"
expect 'tensors of model.onnx that lie in it' 0 "$(python -c "
import onnx
print(sum(t.data_location for t in onnx.load('model.onnx', load_external_data=False).graph.initializer))")"
exit "$faults"
