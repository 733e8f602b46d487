"""The board of a run, as `watch` and `status` draw it. Titles and keys are short on purpose."""

from __future__ import annotations

import functools

from boxcar.shared.catalogue.sentence import Said, sentence_or_text

SENTENCES = {
    # --- the head
    "boxes": Said("{n} {n:box|boxes}", "{n} 台"),
    "looked": Said("looked {age} ago", "{age} 前查看"),
    "so_far": Said("{so_far} so far", "已花 {so_far}"),
    "so_far_to_go": Said("{so_far} so far, {to_go} to go", "已花 {so_far}，还需 {to_go}"),
    "priced": Said("{text} ({n} of {all} boxes)", "{text}（{all} 台中的 {n} 台）"),
    "cells": Said("cells", "cell"),
    "left": Said("left {time}", "剩余 {time}"),
    # --- the state of a cell
    "verified": Said("verified", "已验证"),
    "running": Said("running", "运行中"),
    "settling": Said("settling", "收尾中"),
    "copied": Said("{what} {percent} %, {time} left", "{what} {percent} %，剩余 {time}"),
    "retrying": Said("retrying", "重试中"),
    "preempted": Said("preempted", "被抢占"),
    "failed": Said("failed", "失败"),
    "broken off": Said("broken off", "已中断"),
    "damaged": Said("damaged", "损坏"),
    "unknown": Said("unknown", "未知"),
    "dropped": Said("dropped", "已移除"),
    "queued": Said("queued", "排队"),
    "accepted": Said("accepted", "已人工接受"),
    "in_doubt": Said("in doubt: {doubt}", "存疑：{doubt}"),
    "claimed": Said("claimed", "已领取"),
    "succeeded": Said("succeeded", "已跑完"),
    "synced": Said("synced", "已发布"),
    "abandoned": Said("abandoned", "已放弃"),
    "bad": Said("bad", "无法加载"),
    "missing": Said("missing", "未取回"),
    # --- titles of columns
    "box": Said("box", "机器"),
    "half_hour": Said("30 min", "30 分钟"),
    "gpu": Said("GPU", "GPU"),
    "memory": Said("mem", "内存"),
    "cell": Said("cell", "cell"),
    "epoch": Said("epoch", "epoch"),
    "left_title": Said("left", "剩余"),
    "heartbeat": Said("heartbeat", "心跳"),
    # --- the condition of a queue
    "is_not_started": Said("not started", "未启动"),
    "is_running": Said("running", "运行中"),
    "is_idle": Said("idle", "空闲"),
    "is_pending": Said("pending", "排队中"),
    "is_held": Said("held", "排队受阻"),
    "is_done": Said("done", "已完成"),
    "is_incomplete": Said("incomplete", "未全部运行"),
    "is_drained": Said("drained", "已排空"),
    "is_stopped": Said("stopped", "已停止"),
    "is_unreachable": Said("unreachable", "无法连接"),
    "is_unknown": Said("unknown", "未知"),
    "is_damaged": Said("damaged", "日志损坏"),
    "is_agent_dead": Said("agent dead", "agent 已死"),
    "is_trainer_dead": Said("trainer dead", "训练进程已死"),
    "is_no_room": Said("no room", "磁盘已满"),
    "is_stalled_agent": Said("stalled agent", "agent 无响应"),
    "is_step_frozen": Said("step frozen", "step 停滞"),
    # --- what needs a person
    "needs_you": Said("needs you", "需要处理"),
    "why_held": Said("{sentence}", "{sentence}"),
    "why_unreachable": Said(
        "unreachable{since}: not dead; look at the console (balance, power, port)",
        "无法连接{since}：不代表已死；请看平台控制台（余额、电源、端口）",
    ),
    "since": Said(" {age}", " {age}"),
    "why_unknown": Said(
        "not readable now: look again before you decide anything",
        "暂时读不到：再看一次，然后再做决定",
    ),
    "why_damaged": Said(
        "its journal is damaged; nothing after the damage is known", "日志损坏；损坏之后的内容未知"
    ),
    "why_agent_dead": Said(
        "its agent is gone; a launch continues where it was", "agent 已退出；launch 会从断点继续"
    ),
    "why_trainer_dead": Said(
        "no process of {cell} is left: stop it, then launch it again",
        "{cell} 的进程已不在：先 stop，再 launch",
    ),
    "why_no_room": Said(
        "{cell} waits for room on a full disk: make some, and it continues by itself",
        "磁盘已满，{cell} 在等空间：腾出空间后会自动继续",
    ),
    "why_stalled_agent": Said(
        "its agent holds the lock, and has given no sign for{since}",
        "agent 仍持有锁，但已没有动静{since}",
    ),
    "why_step_frozen": Said("{sentence}", "{sentence}"),
    "why_incomplete": Said("{sentence}", "{sentence}"),
    "why_stopped": Said("{sentence}", "已停止：{sentence}"),
    "idle_gpu": Said(
        "GPU {percent} % for {time} while a cell runs: data loading?",
        "有 cell 在跑，GPU 却有 {time} 只用了 {percent} %：数据加载太慢？",
    ),
    "alike": Said("{n} cells", "{n} 个 cell"),
    "blocked": Said(
        "{n} {n:cell waits|cells wait} for {by}, which {why}", "{n} 个 cell 在等 {by}（{why}）"
    ),
    "clock": Said("clock", "时限"),
    "clock_more": Said("({n} more: {command})", "（还有 {n} 条：{command}）"),
    "webhooks_off": Said("webhooks: off ({name} not set)", "webhooks：未开启（{name} 未设置）"),
    "webhooks_off_at_launch": Said(
        "webhooks: off (no URL was set at launch)", "webhooks：未开启（launch 时没有设置 URL）"
    ),
    # --- titles and folds
    "running_title": Said("running", "运行中"),
    "done_title": Said("done ({n})", "已完成（{n}）"),
    "queued_title": Said("queued ({n})", "排队（{n}）"),
    "failed_title": Said("needs you ({n})", "需要处理（{n}）"),
    "boxes_title": Said("boxes ({n})", "机器（{n}）"),
    "found_title": Said("cells with {text} ({n})", "名字含 {text} 的 cell（{n}）"),
    "more": Said("{n} more: {key}", "还有 {n} 个：{key}"),
    "more_done": Said("{n} more done", "还有 {n} 个已完成"),
    "some_queued": Said("{n} queued", "{n} 个排队"),
    "all_by": Said("{text}: {command}", "{text}：{command}"),
    "more_above": Said("{n} above", "上面还有 {n} 个"),
    "more_below": Said("{n} below", "下面还有 {n} 个"),
    "at_ease": Said("{n} {n:box|boxes} at ease: {key}", "{n} 台正常：{key}"),
    "is_queued": Said("{n} queued: {key}", "{n} 个排队：{key}"),
    "nothing": Said("nothing here", "这里没有内容"),
    # --- the foot
    "next": Said("next: {command}", "下一步：{command}"),
    "why": Said("{command}  ({because})", "{command}（{because}）"),
    "at_work": Said(
        "agents are at work; there is nothing to do. x ends the watch, not the run",
        "agent 正在工作，无需操作。按 x 只结束查看，运行继续",
    ),
    "filter": Said("filter: {text}", "过滤：{text}"),
    "keys": Said(
        "[f]ailed [d]one [q]ueued [b]oxes [l]og [e]xplain [/]filter e[x]it",
        "f 待处理  d 完成  q 排队  b 机器  l 日志  e 说明  / 过滤  x 退出",
    ),
    "keys_in_list": Said(
        "arrows, Enter opens, Esc back, e[x]it", "方向键  Enter 打开  Esc 返回  x 退出"
    ),
    "keys_in_cell": Said("[l]og [e]xplain, Esc back, e[x]it", "l 日志  e 说明  Esc 返回  x 退出"),
    "keys_short": Said("f d q b l e / x", "f d q b l e / x"),
    # --- an opened cell
    "log": Said("log, its last lines", "日志的最后几行"),
    "history": Said("what happened", "经过"),
    "no_log": Said("no log yet", "还没有日志"),
    "asking": Said("asking for it", "正在读取"),
}


def condition_sentence(condition: str) -> str:
    """What is the matter with a queue; a word of a newer version stays as it is."""
    return sentence_or_text(f"board.is_{condition.replace(' ', '_')}", condition)


@functools.cache  # there are as many as states, and a table has a hundred thousand
def state_sentence(state: str) -> str:
    """The state of a cell, in the same way."""
    return sentence_or_text(f"board.{state}", state)
