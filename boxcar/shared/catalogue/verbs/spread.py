"""What `split` and `grid` say of the local queue files."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    # --- split
    "finished_rewrite": Said(
        "an interrupted rewrite of the queue files was finished; they are as it planned them",
        "上次中断的队列文件改写已完成，内容与当时计划的一致",
    ),
    "left_out": Said("{file}: left out: {error}", "{file}：未计入：{error}"),
    "no_answer": Said(
        "{box} did not answer ({why}): it is assumed to have no queue yet",
        "{box} 没有应答（{why}）：按还没有队列处理",
    ),
    "on_tier_already": Said(
        "{queues}: on the durable tier already, where lines are only appended or commented out. No "
        "file was changed; put new cells at the end of the queue that ends first",
        "{queues}：已在持久盘上，那里的行只能追加或注释掉。没有改动任何文件；"
        "请把新的 cell 加到最先结束的队列末尾",
    ),
    "is_even": Said(
        "the queues are as even as they get; no file was changed",
        "各队列已尽可能均衡，没有改动任何文件",
    ),
    "cells_moved": Said(
        "{n} {n:cell|cells} moved, with the comments above",
        "已移动 {n} 个 cell，连同它们上方的注释",
    ),
    "to_move": Said("no file was changed; to move the cells", "没有改动任何文件；要移动这些 cell"),
    "stays": Said("stays", "不动"),
    "goes": Said("→ {queue}", "→ {queue}"),
    "n_epochs": Said("{n:.0f} epochs", "{n:.0f} 个 epoch"),
    # --- grid
    "n_written": Said("{n} {n:config|configs} written", "已写出 {n} 个配置"),
    "new_cells": Said("grid: {n} new {n:cell|cells}", "grid：{n} 个新 cell"),
    "in_already": Said(
        "{n} {n:cell|cells} left out, in the queues already: {first}",
        "跳过 {n} 个 cell，它们已在队列中：{first}",
    ),
    "has_hash": Said(
        "{cell} left out: {at} has a # before it; append that line to run it",
        "跳过 {cell}：{at} 前有 #；要运行它，请把那一行追加到末尾",
    ),
    "none_new": Said(
        "no cell is new; the queue files are as they were", "没有新的 cell，队列文件未改动"
    ),
    "to_append": Said(
        "no file was changed; the same command with --write appends the lines",
        "没有改动任何文件；同一条命令加 --write 会追加这些行",
    ),
    "lines_appended": Said("{n} {n:line|lines} appended. Next", "已追加 {n} 行。下一步"),
}
