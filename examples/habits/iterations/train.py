"""As nanoGPT is: settings are globals, a config file is a program that replaces them."""

import os
import time

import torch

# what a config file or --name=value replaces
out_dir = "out"
eval_interval = 5
max_iters = 60
learning_rate = 1e-2
init_from = "scratch"  # or "resume"
device = "cuda"
exec(open("configurator.py").read())

os.makedirs(out_dir, exist_ok=True)
torch.manual_seed(1337)
data = torch.randint(0, 8, (4096,))
model = torch.nn.Sequential(torch.nn.Embedding(8, 16), torch.nn.Linear(16, 8)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
iter_num = 0
if init_from == "resume":
    checkpoint = torch.load(os.path.join(out_dir, "ckpt.pt"), map_location=device)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    iter_num = checkpoint["iter_num"]
    print(f"resuming from iteration {iter_num}")
while iter_num < max_iters:
    at = torch.randint(0, len(data) - 1, (64,))
    loss = torch.nn.functional.cross_entropy(model(data[at].to(device)), data[at + 1].to(device))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    iter_num += 1
    time.sleep(0.05)
    print(f"iter {iter_num}: loss {loss.item():.4f}", flush=True)
    if iter_num % eval_interval == 0 or iter_num == max_iters:
        checkpoint = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "iter_num": iter_num,
        }
        torch.save(checkpoint, os.path.join(out_dir, "ckpt.pt"))
