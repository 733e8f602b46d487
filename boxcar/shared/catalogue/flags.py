"""What each flag of a verb takes and does: `VERB.flag`, or `flag` where all verbs mean the same."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "profile": Said(
        "the platform, a name from profiles/ (default: the one this run was launched with, or "
        "first audited, smoked or pushed; else invoke.yaml's, else the first of the job's "
        "candidates that fits, else local)",
        "平台，profiles/ 中的名称（默认：本次运行上次 launch 或首次 audit、smoke、push 所用；否则 "
        "invoke.yaml 中的；否则 job 的 candidates 中第一个合适的；否则 local）",
    ),
    "job": Said("the job file (default: job.yaml)", "job 文件（默认：job.yaml）"),
    "box": Said("only this box", "只针对该机器"),
    "queue": Said("only this queue", "只针对该队列"),
    "cell": Said("only this cell", "只针对该 cell"),
    "json": Said(
        "one JSON document on stdout, on an error too", "在 stdout 输出一个 JSON 文档，出错时也是"
    ),
    "lang": Said("en or zh (default: your locale's language)", "en 或 zh（默认：系统语言）"),
    "init.script": Said(
        "the train script (default: the one that looks most like it, or you are asked)",
        "训练脚本（默认：最像的一个，否则会询问）",
    ),
    "init.yes": Said("take all guesses and ask nothing", "接受所有推测，不再询问"),
    "init.run_help": Said(
        "run the script's --help as well, for flags that its source does not say",
        "同时运行脚本的 --help，以得知源码中没有写明的选项",
    ),
    "push.mixed": Said(
        "new lines may run other code than the cells before them",
        "允许新行使用与之前的 cell 不同的代码",
    ),
    "smoke.all": Said(
        "try each cell also where there are more than 12, not one of each kind",
        "超过 12 个时也逐个试跑，而不是每类一个",
    ),
    "rehearse.cell": Said(
        "rehearse this cell (default: the first of each task and number of ranks)",
        "演练该 cell（默认：每种 task 和 rank 数的第一个）",
    ),
    "rehearse.kills": Said(
        "how often the second run is killed (default: 1)", "第二次运行被杀的次数（默认：1）"
    ),
    "rehearse.seed": Said(
        "picks the moments of the kills; give the same one to repeat a rehearsal",
        "决定杀进程的时刻；给同一个值可重复演练",
    ),
    "rehearse.tolerance": Said(
        "relative difference that still counts as equal (default: 1e-6)",
        "仍视为相等的相对误差（默认：1e-6）",
    ),
    "split.speed": Said("2 for a box that is twice as fast", "2 表示该机器快一倍"),
    "split.minutes": Said(
        "how many minutes a cell of this task, or this cell, takes",
        "该 task 的每个 cell（或该 cell）需要多少分钟",
    ),
    "split.write": Said(
        "rewrite the local queue files; without it the new order is only shown",
        "改写本地队列文件；不加则只显示新的顺序",
    ),
    "grid.cfg": Said(
        "the config of all cells, as in a queue line; - for none",
        "所有 cell 的 config，写法同队列行；- 表示没有",
    ),
    "grid.task": Said(
        "their task, as in a queue line; may be left out where the command takes none",
        "它们的 task，写法同队列行；命令不需要时可省略",
    ),
    "grid.epochs": Said("their epochs (default: those of the job)", "epoch 数（默认：job 中的）"),
    "grid.set": Said(
        "the values of one key, a,b,c or 0..2; `boxcar grid` takes them without --set too",
        "一个键的取值，a,b,c 或 0..2；`boxcar grid` 中可省略 --set",
    ),
    "grid.queue": Said("a queue for the lines (default: all)", "写入的队列（默认：全部）"),
    "grid.configs": Said(
        "write one config file for each cell into this folder below the code folder, for scripts "
        "that take no overrides",
        "在代码目录下的该目录为每个 cell 写一个 config 文件，用于不接受覆盖参数的脚本",
    ),
    "grid.write": Said(
        "write the lines and files; without it they are only shown",
        "写出行和文件；不加则只显示",
    ),
    "launch.start_index": Said(
        "skip the first N cells of each queue (default: as it was launched before)",
        "跳过每个队列的前 N 个 cell（默认：与上次 launch 相同）",
    ),
    "launch.no_smoke": Said(
        "on a platform that bills, launch cells that have not passed smoke; it is recorded",
        "在计费平台上启动未通过 smoke 的 cell；会被记录",
    ),
    "launch.beside": Said(
        "start on a box although another run, or somebody's program on its GPU, is at work there",
        "即使机器上有别的 run 或别人的程序在用 GPU，也在上面启动",
    ),
    "watch.every": Said(
        "time between two looks, such as 10s, 30m or 2h (default: 30s over ssh)",
        "两次查看的间隔，如 10s、30m、2h（默认：ssh 为 30s）",
    ),
    "watch.once_if_changed": Said(
        "look once, and print only what is new since the last such look (for cron)",
        "只看一次，仅打印自上次以来的变化（用于 cron）",
    ),
    "watch.json": Said("one JSON document a line on stdout", "在 stdout 逐行输出 JSON 文档"),
    "board.serve": Said(
        "on 127.0.0.1, under a path that only you are told",
        "在 127.0.0.1 提供，路径只告诉你",
    ),
    "board.port": Said(
        "the port of --serve (default: a free one)", "--serve 的端口（默认：空闲端口）"
    ),
    "board.to": Said(
        "write the page to this file, whole or not at all", "把网页写入该文件（完整写入或不写）"
    ),
    "logs.cell": Said("the cell; `logs NAME` works too", "该 cell；也可写 `logs NAME`"),
    "logs.follow": Said(
        "keep printing until the cell ends; waits for its first line",
        "持续打印直到该 cell 结束；会等待第一行",
    ),
    "logs.lines": Said("the last N lines (default: 50)", "最后 N 行（默认：50）"),
    "logs.json": Said("one JSON document a line on stdout", "在 stdout 逐行输出 JSON 文档"),
    "verify.allow_pickle": Said(
        "load this file even though it may run code", "加载该文件，尽管它可能执行代码"
    ),
    "report.to": Said(
        "html (a file beside the results), md, latex, csv or json (on stdout)",
        "html（结果旁的文件），md、latex、csv 或 json（输出到 stdout）",
    ),
    "report.metric": Said(
        "show this number (default: those of the job's report or metrics)",
        "显示该数值（默认：job 的 report 或 metrics 中的）",
    ),
    "report.baseline": Said(
        "the cell or group to compare with (default: the job's, else the one that is called so, "
        "else the first of its task)",
        "用于比较的 cell 或分组（默认：job 中的；否则名为 baseline 的；否则该 task 的第一个）",
    ),
    "report.run": Said(
        "a run whose results lie here (default: the job's own)",
        "结果在本机的一次运行（默认：job 自己的）",
    ),
    "report.incomplete": Said(
        "LaTeX gets incomplete groups too, in brackets", "LaTeX 也包含不完整的分组，加括号"
    ),
    "export.to": Said(
        "tensorboard, wandb, mlflow or swanlab", "tensorboard、wandb、mlflow 或 swanlab"
    ),
    "export.out": Said(
        "the folder to write to (default: results/RUN/export/TRACKER)",
        "写入的文件夹（默认：results/RUN/export/TRACKER）",
    ),
    "export.run": Said(
        "a run whose results lie here (default: the job's own)",
        "结果在本机的一次运行（默认：job 自己的）",
    ),
    "export.incomplete": Said(
        "0 as the exit code also where a cell is left out", "即使有 cell 未导出，退出码也为 0"
    ),
    "down.abandon": Said(
        "give up the cell of this name; needs --because", "放弃该 cell；需要 --because"
    ),
    "down.gone": Said(
        "this box, or the durable tier by its path, is gone for good; needs --because",
        "该机器（或以路径指明的持久盘）已永久丢失；需要 --because",
    ),
    "down.because": Said(
        "the reason, which is recorded: one for all, or one for each in the same order",
        "原因，会被记录：共用一个，或按相同顺序逐个给出",
    ),
    "down.approve": Said(
        "the digest of the receipt, instead of typing the run's name",
        "receipt 的摘要，代替输入运行名称",
    ),
    "down.rotated": Said(
        "this credential was replaced after its box was given up",
        "机器放弃后，该凭据已更换",
    ),
    "move.cell": Said("the cell to be moved", "要移动的 cell"),
    "move.queue": Said("the queue that gets it", "接收它的队列"),
    "move.gone": Said(
        "its box will never answer again; needs --because",
        "它的机器不会再响应；需要 --because",
    ),
    "move.because": Said("why, for the record", "原因，供记录"),
    "repair.put_back": Said(
        "put back what is proven; else it is only shown", "恢复可证实的内容；否则只显示"
    ),
    "notify.test": Said(
        "send one test message to each endpoint, and show the service's own answer",
        "向每一处各发一条测试消息，并显示服务自己的应答",
    ),
    "notify.from": Said(
        "the box that sends it, as it would send news; without it this machine",
        "由哪台机器发送（与正式通知走同样的路）；不加则由本机发送",
    ),
    "notify.only": Said("only this endpoint, such as feishu", "只针对这一处，例如 feishu"),
    "listen.port": Said(
        "the port to listen on (default: 8765); 0 takes a free one",
        "监听端口（默认：8765）；0 取空闲端口",
    ),
    "listen.through": Said(
        "a rented box, by its ssh alias, whose own 127.0.0.1 is to lead here",
        "租用的机器（ssh 别名），使其自身的 127.0.0.1 通到本机",
    ),
    "triage.log": Said("the log, or - for stdin", "日志文件，或 - 表示标准输入"),
    "triage.add": Said(
        "write a row for this failure into the project's failures.yaml",
        "把这个故障写入项目的 failures.yaml",
    ),
    "triage.rc": Said("its exit code, where you know it", "退出码（若已知）"),
    "explain.cell": Said(
        "explain the state of this cell; without it, the platform and its clocks",
        "说明该 cell 的状态；不加则说明平台及其时钟",
    ),
}
