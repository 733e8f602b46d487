"""What to change before a cell is tried again that would fail in the same way, by its failure."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "M2": Said("make it smaller first: batch, model or epochs", "请先改小：batch、模型或 epoch"),
    "DP15": Said(
        "first fewer workers of its data loader, or a box with a larger /dev/shm",
        "请先减少 data loader 的 worker，或换 /dev/shm 更大的机器",
    ),
    "MOD": Said("install the module on the box first", "请先在机器上安装缺少的模块"),
    "W-ONLY": Said("change how it loads its checkpoint first", "请先修改它读取检查点的方式"),
    "D8": Said("first find the parameters without a gradient", "请先找出没有梯度的参数"),
    "DEVSIDE": Said(
        "first put the index or label right that is out of range", "请先改正越界的索引或标签"
    ),
    "why": Said("as it is, it would fail in the same way", "不改的话，会以同样的方式失败"),
}
