"""What each verb does, in a line, and the words around it in `boxcar --help`."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "usage": Said("usage: boxcar VERB [flags]", "用法：boxcar VERB [选项]"),
    "one_verb": Said("usage: boxcar {verb} [flags]", "用法：boxcar {verb} [选项]"),
    "begin": Said("to begin", "开始"),
    "run": Said("to run", "运行"),
    "look": Said("to look", "查看"),
    "home": Said("to bring home", "取回结果"),
    "end": Said("to end", "结束"),
    "other": Said("other", "其他"),
    "flags": Said("flags", "选项"),
    "examples": Said("examples", "示例"),
    "again": Said("may be given again", "可重复"),
    "where": Said(
        "New here: boxcar demo, then boxcar init in the folder of your code.",
        "初次使用：先 boxcar demo，再在你的代码目录里 boxcar init。",
    ),
    "more": Said(
        "A verb's flags, and commands to copy: boxcar VERB --help",
        "某个命令的选项和可复制的示例：boxcar VERB --help",
    ),
    "tab": Said(
        "Completion with Tab: boxcar --print-completion-script=bash, zsh or fish",
        "Tab 补全：boxcar --print-completion-script=bash、zsh 或 fish",
    ),
    "verb.demo": Said(
        "The whole life of a run on this machine, on real data, in two minutes.",
        "在本机用真实数据走完一次运行的全过程，约两分钟。",
    ),
    "verb.init": Said(
        "Read a folder of training code, and write a job.yaml, a first queue and a .boxcarignore.",
        "读取训练代码目录，写出 job.yaml、第一个队列和 .boxcarignore。",
    ),
    "verb.plan": Said(
        "Resolve job, profile and queues, and show what would run. Spends nothing.",
        "解析 job、profile 和队列，显示将要运行的内容；不产生费用。",
    ),
    "verb.smoke": Said(
        "Every cell for two batches on this machine's CPU, before money is spent.",
        "花钱之前，让每个 cell 在本机 CPU 上跑两个 batch。",
    ),
    "verb.rehearse": Said(
        "Run a cell on the CPU, run it again with a SIGKILL, and compare the two results.",
        "在 CPU 上运行一个 cell，再运行一次并中途 SIGKILL，比较两次结果。",
    ),
    "verb.grid": Said(
        "One line for each combination of values, spread over the queue files; none twice.",
        "为每个取值组合写一行，分配到各队列文件；不会重复。",
    ),
    "verb.push": Said(
        "Build the release, put it on the durable tier, append new queue lines.",
        "构建 release，放到持久盘，追加新的队列行。",
    ),
    "verb.launch": Said(
        "Audit, push, start the agents, and check that the first cells run. Safe to repeat.",
        "检查机器、上传、启动 agent，并确认首批 cell 在运行；可重复执行。",
    ),
    "verb.move": Said(
        "Give one cell of a box that is dead or stopped to another queue.",
        "把已失效或已停止机器上的一个 cell 交给另一个队列。",
    ),
    "verb.split": Said(
        "Spread the cells over the queue files so that all queues end at about the same time.",
        "把 cell 分配到各队列文件，使各队列大致同时结束。",
    ),
    "verb.drain": Said(
        "Let each queue finish its running cell, then end it.",
        "让每个队列跑完当前 cell 后结束。",
    ),
    "verb.stop": Said(
        "Let each queue save a checkpoint, and end it now.",
        "让每个队列保存 checkpoint 并立即结束。",
    ),
    "verb.status": Said("The state of the run, once.", "显示一次运行状态。"),
    "verb.watch": Said(
        "The state of the run, live, until the queues have ended.",
        "实时显示运行状态，直到所有队列结束。",
    ),
    "verb.board": Said(
        "The state of the run as a page of HTML: with --serve on this machine, refreshed by itself "
        "until Ctrl-C; with --to written to a file, once.",
        "以网页显示运行状态：--serve 在本机提供并自动刷新，直到 Ctrl-C；--to 写入文件一次。",
    ),
    "verb.tb": Said(
        "TensorBoard of the run's event files, on the boxes where they lie (through ssh) and here, "
        "until Ctrl-C.",
        "用 TensorBoard 显示运行的事件文件：在其所在的实例上（经 ssh）以及本机，直到 Ctrl-C。",
    ),
    "verb.logs": Said("One cell's log.", "一个 cell 的日志。"),
    "verb.explain": Said(
        "A platform's conveniences and danger clocks, or why a cell is in its state.",
        "平台的便利与危险时钟，或某个 cell 为何处于当前状态。",
    ),
    "verb.triage": Said(
        "Why a training failed, by its log: what it is, what follows, what to type. Needs no run; "
        "- reads stdin.",
        "根据日志判断训练为何失败：是什么、之后会怎样、该输入什么。不需要运行；- 读取标准输入。",
    ),
    "verb.audit": Said(
        "What each box is and has, and whether the run may start there.",
        "每台机器的配置，以及能否在上面开始运行。",
    ),
    "verb.notify": Said(
        "Where news of the run goes. With --test a message to each, and what its service answers.",
        "运行的通知发往哪里。加 --test 则各发一条测试消息，并显示服务的应答。",
    ),
    "verb.listen": Said(
        "A small webhook receiver: checks signatures and prints what arrives. Ctrl-C ends it.",
        "小型 webhook 接收器：校验签名并打印收到的事件。Ctrl-C 结束。",
    ),
    "verb.runs": Said(
        "All runs that you launched from this machine, as they were last seen; asks no box.",
        "从本机启动过的所有运行及其最后所见状态；不询问机器。",
    ),
    "verb.pull": Said(
        "Copy published results here, each checked against its manifest. Safe to repeat.",
        "把已发布的结果复制到本机，逐个按 manifest 校验；可重复执行。",
    ),
    "verb.verify": Said(
        "Compare the roster with the results, load every artifact, write the receipt.",
        "对照名单与结果，加载每个 artifact，写出 receipt。",
    ),
    "verb.report": Said(
        "The ablation as a table and a page: groups, differences, curves; only what is proven.",
        "以表格和网页呈现消融实验：分组、差异、曲线；只含已证实的结果。",
    ),
    "verb.export": Said(
        "What is proven as files for TensorBoard, W&B, MLflow or SwanLab; nothing is sent. Safe to "
        "repeat.",
        "把已证实的结果写成 TensorBoard、W&B、MLflow 或 SwanLab 的文件；不上传；可重复执行。",
    ),
    "verb.repair": Said(
        "Show which of the run's files are damaged, and put back what they were.",
        "显示运行中哪些文件已损坏，并恢复原状。",
    ),
    "verb.down": Said(
        "The teardown gate: it opens when every result is here and loads, and you say yes.",
        "拆除关口：全部结果已在本机且可加载、并经你同意后才放行。",
    ),
    "verb.check-profiles": Said(
        "List profiles that cannot work, and facts older than six months.",
        "列出无法使用的 profile，以及超过六个月的信息。",
    ),
    # The same in a line, of those verbs of every day that need more.
    "line.launch": Said(
        "Audit, push, and start the agents. Safe to repeat.",
        "检查、上传并启动 agent；可重复执行。",
    ),
    "line.explain": Said(
        "A platform and its danger clocks, or why a cell is as it is.",
        "平台及其危险时钟，或某个 cell 的状态原因。",
    ),
    "line.pull": Said(
        "Copy published results here, checked. Safe to repeat.",
        "把已发布的结果校验并复制到本机；可重复执行。",
    ),
    "line.verify": Said(
        "Compare roster and results, load every artifact.",
        "对照名单与结果，加载每个 artifact。",
    ),
    "line.down": Said(
        "The gate: it opens when all is here and loads, and you agree.",
        "拆除关口：结果齐全可加载、且你同意才放行。",
    ),
}
