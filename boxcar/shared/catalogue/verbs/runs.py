"""The runs of a person."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "none": Said(
        "no run was launched from this machine yet. The first one",
        "本机还没有启动过任何 run。第一次",
    ),
    "cells": Said("cells", "cell"),
    # --- what a person has to do with it
    "is_bring_home": Said("bring home", "待取回"),
    "is_at_work": Said("at work", "运行中"),
    "is_unfinished": Said("unfinished", "未跑完"),
    "is_proven_here": Said("proven here, down is next", "已在本机验证，可 down"),
    "is_torn_down": Said("torn down", "已拆除"),
    "is_unknown": Said("unknown", "未知"),
    "is_gone": Said("gone", "已不存在"),
    "verified": Said("{n} of {total} verified", "{total} 个中 {n} 个已验证"),
    "failed": Said("{verified}, {n} failed", "{verified}，{n} 个失败"),
    "ends_in": Said("ends in {time}", "{time} 后结束"),
    "idle_for": Said("idle for {time}", "已空闲 {time}"),
    "renamed": Said(
        "{run}: its job file names {now} by now. To see more of {run}, to bring it home or to end "
        "it, write `name: {run}` there again (a copy of the file will do)",
        "{run}：它的 job 文件现在写的是 {now}。要查看、取回或结束 {run}，请把 `name: {run}` 写回去"
        "（写在该文件的副本里也行）",
    ),
    "gone": Said(
        "{job} is not there any more; its boxes may still bill",
        "{job} 已不存在；它的机器可能仍在计费",
    ),
}
