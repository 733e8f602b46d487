"""What a person meets at an ordinary bad moment: a file is missing, a name is unknown, nothing was
launched yet, a host does not answer.
"""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "no_job": Said(
        "{file}: there is no such file; go to your project's folder, name it with --job PATH, or "
        "have one made from your code",
        "{file}：没有这个文件；请进入项目目录，或用 --job PATH 指定，或从你的代码生成一个",
    ),
    "no_file": Said(
        "{file}: there is no such file; to see what is there: ls {folder}",
        "{file}：没有这个文件；看看那里有什么：ls {folder}",
    ),
    "unreadable": Said("{file}: cannot be read: {why}", "{file}：读不到：{why}"),
    "no_such": Said(
        "{of} has no {what} {name!r}{near}; it has: {there}",
        "{of}没有{what} {name!r}{near}；现有：{there}",
    ),
    "all_of_it": Said("{text}. All of it", "{text}。查看全部"),
    "near": Said(" (did you mean {name!r}?)", "（是不是 {name!r}？）"),
    "none": Said("none", "无"),
    "and_more": Said("{names} and {n:,} more", "{names}，另有 {n:,} 个"),
    "the_run": Said("the run {run}", "run {run} "),
    "the_job": Said("the job", "job "),
    "cell": Said("cell", " cell"),
    "queue": Said("queue", "队列"),
    "box": Said("box", "机器"),
    "cell or task": Said("cell or task", " cell 或任务"),
    "no_profile": Said(
        "{at}there is no profile {name!r}{near}; known: {known}. Yours go into {folder}. "
        "For example",
        "{at}没有名为 {name!r} 的 profile{near}；现有：{known}。你自己的放在 {folder}。例如",
    ),
    "local_files": Said(
        "local files: {problem}; fix it before the next push or launch",
        "本机文件：{problem}；请在下次 push 或 launch 之前改好",
    ),
    "local_files_more": Said(
        "local files: {problem} (and {n} more); fix it before the next push or launch",
        "本机文件：{problem}（另有 {n} 处）；请在下次 push 或 launch 之前改好",
    ),
    "folder_gone": Said(
        "The folder that this shell is in is not there any more. Type: cd to your project's "
        "folder, also where it has the same name",
        "当前 shell 所在的文件夹已不存在。请重新 cd 到项目文件夹（即使名字没变）",
    ),
    "interrupted": Said(
        "\ninterrupted; the same command again continues from here",
        "\n已中断；重复同一条命令会从这里继续",
    ),
    "no_such_sign": Said(
        "{text} cannot be opened or written in this locale, which has no UTF-8. Type: export "
        "LC_ALL=C.UTF-8",
        "当前 locale 不支持 UTF-8，无法打开或写出 {text}。请输入：export LC_ALL=C.UTF-8",
    ),
    "fix": Said("When that is fixed", "改好之后"),
    "no_time": Said(
        "{flag}: expected a time such as 90s, 30m or 2h, found {text!r}",
        "{flag}：应为时间，例如 90s、30m 或 2h，实际是 {text!r}",
    ),
    "no_choice": Said(
        "{flag}: expected {known}, found {found!r}", "{flag}：应为 {known} 之一，实际是 {found!r}"
    ),
    "no_pair": Said(
        "{flag} {text}: expected NAME=NUMBER, such as {sample}=2",
        "{flag} {text}：应为 NAME=NUMBER，例如 {sample}=2",
    ),
    "above_0": Said("expected a number above 0, found {found}", "应为大于 0 的数，实际是 {found}"),
    "no_port": Said(
        "--port: expected a port from 0 to 65535, found {found}",
        "--port：应为 0 到 65535 之间的端口，实际是 {found}",
    ),
    # --- a command line
    "no_idea": Said("No idea what {word!r} is{near}", "不认识 {word!r}{near}"),
    "no_value": Said("--{flag} needs a value", "--{flag} 需要一个值"),
    "takes_no_value": Said("{flag} takes no value", "{flag} 不带值"),
    "given_twice": Said("--{flag} is given twice", "--{flag} 给了两次"),
    "no_words": Said("{verb!r} needs {words}", "{verb!r} 还缺少 {words}"),
    "verb_first": Said(
        "{flag} belongs to a verb, and none was typed; for example: boxcar {line}",
        "{flag} 是某个命令的选项，但没有输入命令；例如：boxcar {line}",
    ),
    "ssh_itself": Said(
        "boxcar has no {word!r}: a box is an alias of ~/.ssh/config, so type: ssh ALIAS",
        "boxcar 没有 {word!r}：机器就是 ~/.ssh/config 里的别名，请直接输入：ssh 别名",
    ),
    "no_settings": Said(
        "{file}: expected boxcar: {{profile: NAME, job: PATH}}, and found something else",
        "{file}：应为 boxcar: {{profile: 名称, job: 路径}}，实际不是",
    ),
    "no_libraries": Said(
        "{library} is missing: this Python has Invoke, and not Boxcar's libraries. Type: python3 "
        "bootstrap.py && {again}",
        "缺少 {library}：这个 Python 有 Invoke，但没有 Boxcar 的依赖库。请输入：python3 "
        "bootstrap.py && {again}",
    ),
    "broken_install": Said(
        "{library} is missing in {python}; install Boxcar there again",
        "{python} 里缺少 {library}；请在那里重新安装 Boxcar",
    ),
    "its_flags": Said(
        "{text}; boxcar --help {verb} shows its flags", "{text}；boxcar --help {verb} 列出它的选项"
    ),
    "the_verbs": Said(
        "{text}; boxcar --list shows the verbs", "{text}；boxcar --list 列出所有命令"
    ),
    "no_number": Said(
        "{flag}: expected a number from 0, found {text!r}",
        "{flag}：应为从 0 起的数，实际是 {text!r}",
    ),
    # --- a host
    "unresolved": Said(
        "{alias}: its name could not be resolved. Is there a `Host {alias}` in ~/.ssh/config? Are "
        "you online?",
        "{alias}：无法解析这个名字。~/.ssh/config 里有 `Host {alias}` 吗？网络通吗？",
    ),
    # --- nothing there yet
    "no_log": Said(
        "{cell}: no log yet; the cell is {state}. See", "{cell}：还没有日志；状态：{state}。请看"
    ),
    "no_such_log": Said(
        "{log}: there is no such log here; of a cell", "{log}：这里没有这个日志；某个 cell 的日志"
    ),
    "log_awaited": Said(
        "{cell} is {state}; its log is shown from its first line on",
        "{cell}：{state}；会从日志的第一行开始显示",
    ),
    "nothing_to_pull": Said(
        "there is nothing to pull: the durable tier ({tier}) is not mounted, or the run was not "
        "launched yet",
        "没有可拉取的内容：持久盘（{tier}）没有挂载，或此 run 还没有启动",
    ),
    "pulled_and_gone": Said(
        "there is nothing to pull: the run was torn down, after its results had come here "
        "({folder})",
        "没有可拉取的内容：此 run 已拆除，结果此前已拉回本机（{folder}）",
    ),
    # --- launch
    "no_smoke_words": Said(
        "{what}, and {profile} bills for what two batches on this machine would show: add smoke: "
        "(such as smoke: --limit-batches 2 --epochs 1), or launch without",
        "{what}，而 {profile} 会为本机两个 batch 就能发现的问题计费：请加上 smoke:"
        "（例如 smoke: --limit-batches 2 --epochs 1），或不试跑就启动",
    ),
    "beside": Said(
        "{boxes}: others are at work there, so nothing was started. To start beside them",
        "{boxes}：上面有别的程序在工作，所以没有启动。若要与它们一起运行",
    ),
    "beside_ask": Said(
        "{boxes}: others are at work there. Start beside them all the same? [y/N] ",
        "{boxes}：上面有别的程序在工作。仍要一起运行吗？[y/N] ",
    ),
    "beside_here": Said("also at work on this machine: {others}", "本机上还在工作的：{others}"),
    "no_smoke_pass": Said(
        "{n} {n:cell|cells} without a smoke pass for what would run now, such as {first}, and "
        "{profile} bills for what two batches on this machine would show",
        "有 {n} 个 cell（例如 {first}）还没有通过当前内容的试跑，"
        "而 {profile} 会为本机两个 batch 就能发现的问题计费",
    ),
    "make_room": Said("{what}. Make room, then", "{what}。请腾出空间，然后"),
    "no_python": Said(
        "{profile}: expected a Python as training_python, which also checks the results; "
        "{python} was asked to print a line, and ended with {ended}. Name one, then",
        "{profile}：training_python 应为一个 Python（结果也由它核验）；"
        "让 {python} 打印一行，它却以 {ended} 结束。请改为一个 Python，然后",
    ),
    "negative_index": Said(
        "--start-index counts cells from 0, found {number}",
        "--start-index 从 0 开始数 cell，实际是 {number}",
    ),
    "not_launched": Said(
        "{queue}: was not launched: {why} When that is fixed",
        "{queue}：没有启动：{why} 解决之后",
    ),
    "unsmoked": Said(
        "{cells} {n:is|are} launched without a smoke: {reason}",
        "{cells}（{n} 个）未经试跑就启动：{reason}",
    ),
    "untried": Said(
        "{n} {n:cell|cells} not tried: no smoke has tried them, only others of their kind; smoke "
        "--all tries each",
        "{n} 个 cell 没有试跑过：只试过同类的其他 cell；smoke --all 会逐个试",
    ),
    "begins_with": Said(
        "{queue}: begins with {cell}, as it was launched before; to run the cells above too",
        "{queue}：从 {cell} 开始，与上次启动时相同；若上面的 cell 也要运行",
    ),
    "begins_below": Said(
        "{queue}: begins below the cells that were there then, as it was launched before; to run "
        "the cells above too",
        "{queue}：从当时已有的 cell 之后开始，与上次启动时相同；若上面的 cell 也要运行",
    ),
    # --- rehearse
    "no_rehearse_words": Said(
        "{at}: the job does not say what makes a run some dozens of steps long. Add the words that "
        "your script takes for it, such as: rehearse: --limit-batches 8 --epochs 5",
        "{at}：job 没有说明怎样跑几十个 step。请写上你的脚本接受的参数，"
        "例如：rehearse: --limit-batches 8 --epochs 5",
    ),
    "no_resume": Said(
        "{at}: the job names no file from which a cell resumes, so there is no resume to rehearse. "
        "Add it, such as: resume: latest.pth",
        "{at}：job 没有写明从哪个文件恢复，无法演练。请加上，例如：resume: latest.pth",
    ),
    "kills": Said(
        "--kills: expected a number from 1 to {most}, found {found}",
        "--kills：应为 1 到 {most} 之间的数，实际是 {found}",
    ),
    "tolerance": Said(
        "--tolerance: expected a number from 0 to below 1, found {found}",
        "--tolerance：应为 0 到 1（不含）之间的数，实际是 {found}",
    ),
    "skipped": Said("{cells} {n:is|are} skipped: {reason}", "跳过 {cells}（{n} 个）：{reason}"),
    "smoke_words": Said(
        "the job has no rehearse: words, so those of smoke: are used; they may be too short",
        "job 没有 rehearse:，改用 smoke: 的参数；可能太短",
    ),
    "rehearsing": Said("--- {cell} ({n} of {all})", "--- {cell}（{n} / {all}）"),
    "rehearsal_of": Said("rehearsal of {run}", "{run} 的恢复演练"),
    "no_rehearsal_report": Said(
        "{cell}: the rehearsal ended with exit code {code} and left no report; the reason is above",
        "{cell}：演练以退出码 {code} 结束，没有留下报告；原因见上",
    ),
    "not_as_before": Said(
        "not proven to resume as if nothing had happened: {cells}",
        "未能证明恢复后与未中断时一致：{cells}",
    ),
}
