"""Train scripts that `make gpu` runs as programs of their own."""

from __future__ import annotations

# Steps on the device, resumable; `KILL_AT` and `TERM_IN_SAVE` end it on its way.
RESUMES = """
import hashlib, os, signal, sys
import torch
from torch import nn
from torch.nn import functional as F
from boxcar.training import DistributedConfig, Training

out, width = sys.argv[1], int(os.environ.get("WIDTH", 256))
os.environ["BOXCAR_OUT"] = out
os.makedirs(out, exist_ok=True)
training = Training(out, DistributedConfig(mixed_precision_policy="bf16"))
torch.manual_seed(0)
layers = [nn.Linear(16, width), nn.Dropout(0.1), nn.ReLU(), nn.Linear(width, width)]
model = training.wrap(nn.Sequential(*layers, nn.Linear(width, 1)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
data = torch.utils.data.TensorDataset(torch.arange(640.0).reshape(40, 16) / 640)
loader = training.batches(data, batch_size=4)
is_resumed = training.resume(optimizer=optimizer)
is_told = False
for epoch in training.epochs(3):
    for (inputs,) in loader:
        inputs = inputs.to(training.device)
        with training.autocast():
            loss = F.mse_loss(model(inputs), inputs.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        is_now = training.state.step == 12 and not is_resumed and not is_told
        if os.environ.get("TERM_IN_SAVE") and is_now:
            training.state.step += 1
            training.checkpointer.save_async()
            training.state.step -= 1
            os.kill(os.getpid(), signal.SIGTERM)  # the thread is writing
            is_told = True
        training.step(loss=loss)
        if training.state.step == int(os.environ.get("KILL_AT", -1)):
            os.kill(os.getpid(), signal.SIGKILL)
weights = b"".join(p.detach().float().cpu().numpy().tobytes() for p in model.parameters())
open(os.path.join(out, "end.txt"), "w").write(hashlib.sha256(weights).hexdigest())
training.finish()
"""

# A cell of a queue: some seconds on the device.
TRAIN = """
import json, sys, time
import torch
began, device = time.time(), "cuda" if torch.cuda.is_available() else "cpu"
from boxcar.training import progress
weights = torch.randn(512, 512, device=device)
for step in range(40):
    weights = (weights @ weights).tanh()
    progress.report(step=step, loss=float(weights.mean()))
    time.sleep(0.2)
record = {"began": began, "ended": time.time(), "device": device}
json.dump(record, open(sys.argv[2] + "/m.json", "w"))
"""

_OOM = """
import torch
held = [torch.empty(2**30, device="cuda") for _ in range(1000)]
"""
_OOM_DRY = """
raise MemoryError("stands in: torch.OutOfMemoryError: CUDA out of memory.")
"""
_ILLEGAL = """
import torch, triton, triton.language as tl

@triton.jit
def write_far_away(pointer):
    tl.store(pointer + 2**40, 1.0)

there = torch.zeros(1, device="cuda")
write_far_away[(1,)](there)
torch.cuda.synchronize()
"""
_ILLEGAL_DRY = """
raise RuntimeError("stands in: CUDA error: an illegal memory access was encountered")
"""
_NAN = """
import torch
from boxcar.training import GradientAccumulator, ranks
me = ranks.join()
model = torch.nn.Linear(4, 1).to(me.device)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
accumulator = GradientAccumulator(1, check_finite="every 10")
for step in range(100):
    batch = torch.randn(8, 4, device=me.device) * (float("nan") if step == 5 else 1)
    with accumulator.micro_step(model, step):
        accumulator.step(model(batch).square().mean(), optimizer, step)
"""

# Of each: the script, what stands in for it without a GPU, and the class that triage gives.
FAILURES = {
    "a CUDA out of memory": (_OOM, _OOM_DRY, "OUT_OF_MEMORY"),
    "an illegal access": (_ILLEGAL, _ILLEGAL_DRY, "RESUME_SAME"),
    "a loss that is NaN": (_NAN, _NAN, "RESUME_SAME"),
}
