"""TensorBoard of a run: where it is shown, and why not."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "asking": Said("looking for event files", "正在查找事件文件"),
    "shown": Said("{where}  {url}", "{where}  {url}"),
    "here": Said("here", "本机"),
    "no_event": Said(
        "{where}: no event file (events.out.tfevents.*)",
        "{where}：没有事件文件（events.out.tfevents.*）",
    ),
    "no_tensorboard": Said(
        "{where}: {n} event {n:file|files}, and its Python has no TensorBoard. To install it there",
        "{where}：有 {n} 个事件文件，但其 Python 没有 TensorBoard。安装",
    ),
    "line": Said("{said}: {line}", "{said}：{line}"),
    "not_shown": Said("{where}: {why}", "{where}：{why}"),
    "until": Said(
        "until Ctrl-C, which ends TensorBoard there too",
        "按 Ctrl-C 结束，那边的 TensorBoard 也随之结束",
    ),
    "nothing": Said(
        "{run}: nothing to show. Event files below {{out}} are found on a cell's box while it "
        "runs, and here once they were pulled (collect: [tb/])",
        "{run}：没有可显示的内容。{{out}} 下的事件文件，在 cell 运行时可在其实例上找到，"
        "pull 之后（collect: [tb/]）可在本机找到",
    ),
    "ended": Said(
        "{where}: TensorBoard has ended, or the link was cut. Again",
        "{where}：TensorBoard 已结束或连接中断。再次",
    ),
}
