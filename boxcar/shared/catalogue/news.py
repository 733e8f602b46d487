"""What a chat is told of a run, while nobody looks."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    # --- the first line
    "one": Said("Boxcar {run}: {what}", "Boxcar {run}：{what}"),
    "several": Said("Boxcar {run}: {n} things happened", "Boxcar {run}：{n} 条消息"),
    # --- what happened
    "class": Said("{name}, {id}", "{name}，{id}"),
    "failed": Said("{cell} failed ({failure})", "{cell} 失败（{failure}）"),
    "done": Said(
        "{queue} is done, {verified} {verified:cell|cells} verified",
        "{queue} 已完成，{verified} 个 cell 通过验证",
    ),
    "done_failed": Said(
        "{queue} is done, {verified} {verified:cell|cells} verified, {failed} failed",
        "{queue} 已完成，{verified} 个 cell 通过验证，{failed} 个失败",
    ),
    "stopped": Said("{queue} has stopped", "{queue} 已停止"),
    "stopped_needs": Said("{queue} has stopped and needs you", "{queue} 已停止，需要你处理"),
    "warning": Said("a warning from {box}", "{box} 发出警告"),
    "needs_you": Said("{box} needs you", "{box} 需要你处理"),
    "idle": Said(
        "{box} needs you: GPU {percent} % for {time} while {cell} runs",
        "{box} 需要你处理：{cell} 在跑，GPU 却有 {time} 只用了 {percent} %",
    ),
    "idle_why": Said(
        "Loading data, or waiting for something? The log and the curves tell.",
        "是数据加载太慢，还是在等什么？看日志和曲线。",
    ),
    "needs": Said("{box} needs you ({type})", "{box} 需要处理（{type}）"),
    "mirror_late": Said(
        "the newest checkpoint of {cell} did not reach the durable tier within the {seconds} s "
        "that the box had: the one there is from {at} UTC",
        "机器只剩 {seconds} 秒，{cell} 最新的 checkpoint 没来得及传到持久存储："
        "那里的一份是 UTC {at} 的",
    ),
    "mirror_none": Said(
        "no checkpoint of {cell} reached the durable tier within the {seconds} s that the box "
        "had: if the box is lost, the cell begins anew",
        "机器只剩 {seconds} 秒，{cell} 的 checkpoint 一份也没传到持久存储："
        "如果机器没了，这个 cell 要从头开始",
    ),
    # --- of several things
    "item": Said("- {what}", "- {what}"),
    "item_because": Said("- {what}: {why}", "- {what}：{why}"),
    "more": Said("- and {n} more", "- 还有 {n} 条"),
    # --- where, how much is left, and what else happened
    "where": Said("{queue} on {box}, {at} UTC", "{queue}（{box}），UTC {at}"),
    "left": Said("left: {left} of {cells} {cells:cell|cells}", "剩余：{left} / {cells} 个 cell"),
    "left_time": Said(
        "left: {left} of {cells} {cells:cell|cells}, about {time}",
        "剩余：{left} / {cells} 个 cell，约 {time}",
    ),
    "since": Said("since the last message: {counts}", "上一条消息之后：{counts}"),
    "and": Said("{first}, {second}", "{first}，{second}"),
    "n_started": Said("{n} started", "{n} 次启动"),
    "n_verified": Said("{n} verified", "{n} 个通过验证"),
    "n_retried": Said("{n} retried", "{n} 次重试"),
    "n_warned": Said("{n} {n:warning|warnings}", "{n} 条警告"),
    "next": Said("next: {command}", "下一步：{command}"),
}
