"""What a look at a run says in lines: `status` in a pipe, and `watch` of each change."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "cell": Said("{cell}: {state}, attempt {attempt}", "{cell}：{state}，第 {attempt} 次尝试"),
    "cell_unknown": Said("{cell}: {state}, attempt unknown", "{cell}：{state}，第几次尝试未知"),
    "warning": Said("warning: {text}", "警告：{text}"),
    "queues_of": Said("{run}: queues", "{run}：队列"),
    "boxes_of": Said("{run}: boxes", "{run}：机器"),
    "cells_of": Said("{run}: cells", "{run}：cell 列表"),
    "of": Said("{part} of {whole}", "{part} / {whole}"),
    "free": Said("{size}, {inodes} inodes", "{size}，{inodes} 个 inode"),
    "blocked": Said("blocked: {by} {why}", "被阻塞：{by} {why}"),
    "cell_in_doubt": Said("{cell}: in doubt: {doubt}", "{cell}：存疑：{doubt}"),
    "again": Said(
        "The run continues without watch. To look again", "查看已结束，运行仍在继续。再次查看"
    ),
}
