"""What `init` asks and says while it drafts a job for a folder."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    # --- what it asks
    "which": Said(
        "Which one trains? [1-{n}, Enter for {first}] ",
        "哪一个是训练脚本？[1-{n}，回车选 {first}] ",
    ),
    "others": Said(
        "{first} is taken; {n} {n:other script looks|others look} like it ({others})."
        " To take another",
        "选用 {first}；另有 {n} 个脚本也像训练脚本（{others}）。要换一个",
    ),
    "write": Said("Write {files}? [Y/n] ", "写入 {files}？[Y/n] "),
    "has_to_be_given": Said(
        "{flag} has to be given ({at}); Enter to say it later: ",
        "必须给出 {flag}（{at}）；回车则以后再填：",
    ),
    "hidden_flags": Said(
        "{script} takes flags that do not stand in it", "{script} 接受的参数没有全部写在它自己里面"
    ),
    "run_help": Said(
        "Run {script} --help to see them? It runs what the script imports. [y/N] ",
        "运行 {script} --help 查看这些参数？这会执行脚本所 import 的代码。[y/N] ",
    ),
    # --- what came of --help
    "help_runs": Said(
        "{command} runs, for {seconds} s at most", "正在运行 {command}，最多 {seconds} 秒"
    ),
    "help_problem": Said(
        "{command} {problem}; {n} {n:flag|flags} of it are taken",
        "{command} {problem}；采用了其中 {n} 个参数",
    ),
    "help_nothing": Said(
        "{command} names no flags; the source alone counts", "{command} 没有列出参数；只以源码为准"
    ),
    "help_flags": Said("{command} names {n} {n:flag|flags}", "{command} 列出了 {n} 个参数"),
    # --- how it ended
    "nothing_written": Said("nothing was written", "没有写入任何文件"),
    "to_write": Said("Nothing was written. To write it", "没有写入任何文件。要写入，请用"),
    "wrote": Said("wrote {file}", "已写入 {file}"),
    "left": Said("left as it is: {file}", "保持原样：{file}"),
    "to_do": Said("to do: {what}", "待办：{what}"),
    "not_judged": Said(
        "{file} could not be judged: {kind}: {why}", "{file} 无法判断：{kind}：{why}"
    ),
    "unfit": Said(
        "the config {name} stands in no queue: a line cannot hold its name. Rename it",
        "配置 {name} 没有写进队列：一行写不下这个名字。请改名",
    ),
    "refused": Said("plan refuses: {what}", "plan 不接受：{what}"),
    "correct": Said("{n} {n:thing|things} to correct first; then", "先改正 {n} 处；然后"),
    "look": Said("Look at it", "查看一下"),
    "try": Said(
        "Then try each cell for a moment on this machine", "然后在本机把每个 cell 试跑片刻"
    ),
    # --- why a key says what it says
    "command": Said("{script} looks most like what trains{why}", "{script} 最像训练脚本{why}"),
    "guessed_end": Said(
        "{script} looks most like what trains{why}; without {flag} it never ends ({at}): 10000 is a"
        " guess, say how long",
        "{script} 最像训练脚本{why}；没有 {flag} 它不会结束（{at}）：10000 只是猜测，"
        "请填写要训练多久",
    ),
    "says_where": Said("{word} says where to write", "{word} 指定写到哪里"),
    "says_where_at": Said(
        "{word} says where to write ({script}, {at})", "{word} 指定写到哪里（{script}，{at}）"
    ),
    "takes_no_folder": Said(
        "it takes no folder to write to, so it starts in the cell's own",
        "它不接受输出目录，所以在 cell 自己的目录里启动",
    ),
    "saves": Said("what {script} saves (line {lines})", "{script} 保存的文件（第 {lines} 行）"),
    "imports_save": Said(
        "what the files that {script} imports save", "{script} 所 import 的文件保存的内容"
    ),
    "events": Said(
        "all that it is seen to write is for TensorBoard", "看得出来的输出只有 TensorBoard 的日志"
    ),
    "writes_nothing": Said(
        "nothing that it runs of this project writes a file, so a cell's log is its result; more"
        " under metrics",
        "它运行的项目代码都不写文件，所以 cell 的日志就是结果；要显示其中的数字，见 metrics",
    ),
    "default_epochs": Said("where a queue line gives none", "queue 的行里没有写时用它"),
    "newest": Said("the newest of what it saves", "它所保存的最新一个"),
    "only_with_checkpoint": Said("only where there is a checkpoint", "只在有检查点时使用"),
    "short": Said(
        "what makes a run short enough to try each cell on a CPU",
        "让运行足够短，好在 CPU 上试跑每个 cell",
    ),
    "imports_root": Said(
        "it imports what lies in this folder, and Python looks beside the script",
        "它 import 的是这个文件夹里的模块，而 Python 只在脚本旁边找",
    ),
    "env": Said(
        "without it {framework} cannot load its own checkpoints (torch 2.6 and newer)",
        "没有它，{framework} 读不了自己的检查点（torch 2.6 及以上）",
    ),
    "own_ranks": Said(
        "{framework} forms its ranks itself under it", "{framework} 会在其下自己启动多个进程"
    ),
    "forms_ranks": Said("the script forms a group of ranks", "脚本会建立多进程组"),
    "one_process": Said(
        "nothing in the script forms a group of ranks, so one process",
        "脚本里没有建立多进程组，所以用单进程",
    ),
    # --- what is left for a person to say
    "by_position": Said(
        "{script} reads its words by position: add them to command",
        "{script} 按位置读取参数：请把它们加到 command",
    ),
    "no_end": Said(
        "{at}: this loop has no way out; give it one, or say time: 6h",
        "{at}：这个循环没有出口；请给它一个，或写 time: 6h",
    ),
    "reads_here": Said(
        "{script} names {path}, which lies here; it starts in each cell's own folder, where nothing"
        " does: where it only reads there, write links: with that folder; else give it the whole "
        "path",
        "{script} 里写着 {path}，它在这个文件夹里；而脚本在每个 cell 自己的空目录里启动："
        "若只是读取，请在 links: 写上那个目录；否则请改成完整路径",
    ),
    "open_end": Said(
        "{at}: this loop ends by {key}, which is {value}: say a number",
        "{at}：这个循环由 {key} 结束，而它是 {value}：请给一个数",
    ),
    "add_flag": Said(
        "{flag} has to be given ({at}): add it to command",
        "必须给出 {flag}（{at}）：请加到 command",
    ),
}
