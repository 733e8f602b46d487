"""OmegaConf without Hydra: a YAML file, and key=value words on the command line."""

import os
import time

import torch
from omegaconf import OmegaConf
from torch import nn

cfg = OmegaConf.merge(OmegaConf.load("config.yaml"), OmegaConf.from_cli())
print(OmegaConf.to_yaml(cfg), flush=True)
torch.manual_seed(cfg.seed)
os.makedirs(cfg.out_dir, exist_ok=True)

x = torch.linspace(-1, 1, 256).unsqueeze(1)
y = torch.sin(3 * x)
model = nn.Sequential(nn.Linear(1, cfg.model.width), nn.Tanh(), nn.Linear(cfg.model.width, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=cfg.optim.lr)
first = 0
if cfg.resume:
    state = torch.load(cfg.resume, weights_only=False)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    first = state["epoch"] + 1
    print(f"resumed at epoch {first}", flush=True)

for epoch in range(first, cfg.epochs):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    time.sleep(0.1)
    state = {
        "epoch": epoch,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "cfg": OmegaConf.to_container(cfg),
    }
    path = os.path.join(cfg.out_dir, "last.pt")
    torch.save(state, path + ".tmp")
    os.replace(path + ".tmp", path)
