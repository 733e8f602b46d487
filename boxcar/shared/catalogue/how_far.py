"""How far something is, for what takes its time."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "line": Said(
        "{what}: {done} of {total} ({percent} %){rate}{left}{doing}",
        "{what}：{done} / {total}（{percent} %）{rate}{left}{doing}",
    ),
    "rate": Said(", {rate}/s", "，{rate}/s"),
    "left": Said(", {time} left", "，剩余 {time}"),
    "stalled": Said(", nothing came lately", "，最近没有进展"),
    "doing": Said(", now {what}", "，正在处理 {what}"),
    "parts": Said("; {parts}", "；{parts}"),
    "still": Said("still {what}, for {time} so far", "仍在{what}，已用 {time}"),
    # what it is that goes on
    "push": Said("push", "推送"),
    "pull": Said("pull", "拉取"),
    "smoke": Said("smoke", "试跑"),
    "rehearse": Said("rehearse", "演练"),
    "audit": Said("audit", "检查机器"),
    "running": Said("running", "运行"),
    "hashing": Said("hashing the files here", "校验本机文件"),
    "export": Said("export", "导出"),
    "loading": Said("loading the files here", "加载本机文件"),
    "asking": Said("asking the boxes", "询问各台机器"),
    "release": Said("making the release", "正在制作 release"),
    "asking_what": Said("asking the boxes what they are", "询问各台机器的配置"),
    "checking": Said("the box compares it", "机器正在核对"),
    "leaving": Said("waiting for agents that end", "等待正在结束的 agent"),
    "leaves": Said("{queues}, for {time} so far", "{queues}，已等 {time}"),
    "first_minute": Said(
        "watching whether the first cells really run, for up to a minute",
        "观察首批 cell 是否真正运行，最多一分钟",
    ),
    "second_home": Said("looking into the second home, {url}", "查看第二存储 {url}"),
}
