"""Words by position, and nothing to resume: python train.py OUT [LR] [STEPS]"""

import json
import os
import sys
import time

import torch
from torch import nn

out = sys.argv[1]
lr = float(sys.argv[2]) if len(sys.argv) > 2 else 0.05
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 60

torch.manual_seed(0)
x = torch.linspace(-1, 1, 256).unsqueeze(1)
y = torch.sin(3 * x)
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=lr)

for step in range(steps):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}", flush=True)
    time.sleep(0.1)

torch.save(model.state_dict(), os.path.join(out, "model.pt"))
with open(os.path.join(out, "result.json"), "w") as f:
    json.dump({"mse": loss.item()}, f)
