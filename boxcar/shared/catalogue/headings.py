"""The titles of tables and of their columns that any verb shows."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said, Sentence

SENTENCES = {
    "the run": Said("the run", "本次运行"),
    "what": Said("what", "项目"),
    "value": Said("value", "内容"),
    "queues": Said("queues", "队列"),
    "queue": Said("queue", "队列"),
    "box": Said("box", "机器"),
    "file": Said("file", "文件"),
    "cells": Said("cells", "cell 列表"),
    "cell": Said("cell", "cell"),
    "index": Said("index", "序号"),
    "task": Said("task", "任务"),
    "epochs": Said("epochs", "epoch"),
    "ranks": Said("ranks", "进程数"),
    "says": Said("says", "附加参数"),
    "room": Said("room", "剩余空间"),
    "place": Said("place", "位置"),
    "folder": Said("folder", "目录"),
    "free": Said("free", "可用"),
    "free inodes": Said("free inodes", "可用 inode"),
    "candidates": Said("candidates", "候选平台"),
    "profile": Said("profile", "平台"),
    "taken": Said("taken", "选用"),
    "why": Said("why", "原因"),
    "result": Said("result", "结果"),
    "seconds": Said("seconds", "秒"),
    "note": Said("note", "说明"),
    "verdict": Said("verdict", "判定"),
    "found": Said("found", "实际"),
    "endpoint": Said("endpoint", "发往"),
    "message": Said("message", "消息"),
    "answer": Said("answer", "应答"),
    "variables": Said("variables", "变量"),
    "taken when": Said("taken when", "送达依据"),
    "reason": Said("reason", "原因"),
    "state": Said("state", "状态"),
    "checked": Said("checked", "检查方式"),
    "metric": Said("metric", "指标"),
    "files": Said("files", "文件数"),
    "size": Said("size", "大小"),
    "release": Said("release", "release"),
    "time": Said("time", "用时"),
    "at": Said("at", "时间"),
    "what happened": Said("what happened", "经过"),
    "costs": Said("costs", "耗时"),
    # the rows of plan
    "code": Said("code", "代码"),
    "left out": Said("left out", "不发送"),
    "durable tier": Said("durable tier", "持久盘"),
    "ends with": Said("ends with", "结束方式"),
    "results": Said("results", "结果目录"),
    "webhooks": Said("webhooks", "webhook"),
    "artifacts": Said("artifacts", "产物"),
    "launcher": Said("launcher", "启动器"),
    "trains with": Said("trains with", "训练用的 Python"),
    "first command": Said("first command", "第一条命令"),
}


def heading(text: str) -> str:
    """The title of a table or column, as a sentence where it is one of these."""
    is_known = text in SENTENCES and not isinstance(text, Sentence)
    return Sentence(f"headings.{text}") if is_known else text
