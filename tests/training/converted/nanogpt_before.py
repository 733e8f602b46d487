"""In the style of nanoGPT's train.py: no data set, iterations, its own DDP, a batch drawn ahead."""

import os

import torch
from torch import nn
from torch.distributed import destroy_process_group, init_process_group
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

out_dir = os.environ.get("OUT", ".")
eval_interval, eval_iters = 10, 5
gradient_accumulation_steps, batch_size, block_size = 2, 8, 8
learning_rate, max_iters, warmup_iters, grad_clip = 1e-2, 40, 5, 1.0
ddp = int(os.environ.get("RANK", -1)) != -1
if ddp:
    init_process_group(backend="gloo")
    ddp_rank = int(os.environ["RANK"])
    device, seed_offset, master_process = "cpu", ddp_rank, ddp_rank == 0
else:
    device, seed_offset, master_process = "cpu", 0, True
torch.manual_seed(1337 + seed_offset)
text = torch.arange(2000) * 7 % 31 % 13


def get_batch(split):
    ix = torch.randint(len(text) - block_size - 1, (batch_size,))
    x = torch.stack([text[i : i + block_size] for i in ix])
    y = torch.stack([text[i + 1 : i + 1 + block_size] for i in ix])
    return x.to(device), y.to(device)


class GPT(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.wte, self.drop = nn.Embedding(13, width), nn.Dropout(0.1)
        self.attn = nn.MultiheadAttention(width, 2, batch_first=True)
        self.head = nn.Linear(width, 13)

    def forward(self, idx, targets):
        x = self.drop(self.wte(idx))
        mask = nn.Transformer.generate_square_subsequent_mask(idx.size(1))
        x = x + self.attn(x, x, x, attn_mask=mask, need_weights=False)[0]
        logits = self.head(x)
        return logits, F.cross_entropy(logits.view(-1, 13), targets.view(-1))


@torch.no_grad()
def estimate_loss():
    model.eval()
    losses = [model(*get_batch("val"))[1].item() for _ in range(eval_iters)]
    model.train()
    return {"val": sum(losses) / eval_iters}


def get_lr(it):
    return learning_rate * min(1.0, (it + 1) / warmup_iters)


model = GPT().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
if ddp:
    model = DDP(model)
iter_num, best_val_loss = 0, 1e9
X, Y = get_batch("train")
while True:
    for param_group in optimizer.param_groups:
        param_group["lr"] = get_lr(iter_num)
    if iter_num % eval_interval == 0 and master_process:
        losses = estimate_loss()
        print(f"step {iter_num}: val loss {losses['val']:.4f}")
        if losses["val"] < best_val_loss:
            best_val_loss = losses["val"]
            torch.save({"model": model.state_dict()}, os.path.join(out_dir, "ckpt.pt"))
    for micro_step in range(gradient_accumulation_steps):
        if ddp:
            model.require_backward_grad_sync = micro_step == gradient_accumulation_steps - 1
        logits, loss = model(X, Y)
        loss = loss / gradient_accumulation_steps
        X, Y = get_batch("train")
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    iter_num += 1
    if iter_num >= max_iters:
        break
print(f"final loss {loss.item():.6f}")
if ddp:
    destroy_process_group()
