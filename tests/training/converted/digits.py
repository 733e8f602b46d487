"""Ten pictures of 8 x 8 with noise: enough for a small network to learn, drawn anew each time."""

import torch
from torch.utils.data import Dataset


class Digits(Dataset):
    def __init__(self, count, seed=0):
        draw = torch.Generator().manual_seed(7)
        self.pictures = torch.rand(10, 1, 8, 8, generator=draw)
        self.labels = torch.randint(10, (count,), generator=torch.Generator().manual_seed(seed))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        label = int(self.labels[index])
        return self.pictures[label] + 0.3 * torch.randn(1, 8, 8), label
