"""What `init` asks and says while it drafts a job for a folder."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    # --- what it asks
    "others": Said(
        "{first} is taken; {n} {n:other script looks|others look} like it ({others})."
        " To take another",
        "选用 {first}；另有 {n} 个脚本也像训练脚本（{others}）。要换一个",
    ),
    "write": Said("Write {files}? [Y/n] ", "写入 {files}？[Y/n] "),
    "hidden_flags": Said(
        "{script} takes flags that do not stand in it", "{script} 接受的参数没有全部写在它自己里面"
    ),
    "run_help": Said(
        "Run {script} --help to see them? It runs what the script imports. [y/N] ",
        "运行 {script} --help 查看这些参数？这会执行脚本所 import 的代码。[y/N] ",
    ),
    "which_launcher": Said(
        "Does {script} form a group of ranks? It was not seen. [python, torchrun, accelerate,"
        " deepspeed; Enter to say it later] ",
        "{script} 会建立多进程组吗？没有看到。[python、torchrun、accelerate、deepspeed；"
        "回车则以后再填] ",
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
    "refused": Said("plan refuses: {what}", "plan 不接受：{what}"),
    "correct": Said("{n} {n:thing|things} to correct first; then", "先改正 {n} 处；然后"),
    "look": Said("Look at it", "查看一下"),
    "try": Said(
        "Then try each cell for a moment on this machine", "然后在本机把每个 cell 试跑片刻"
    ),
    # --- why a key says what it says
    "command": Said("{script} looks most like what trains{why}", "{script} 最像训练脚本{why}"),
    "says_where": Said("{word} says where to write", "{word} 指定写到哪里"),
    "takes_no_folder": Said(
        "it takes no folder to write to, so it starts in the cell's own",
        "它不接受输出目录，所以在 cell 自己的目录里启动",
    ),
    "says_where_at": Said("{word} says where to write ({at})", "{word} 指定写到哪里（{at}）"),
    "names_file": Said("the file that {word} is for ({at})", "{word} 所指定的文件（{at}）"),
    "saves": Said("what is saved at {at}", "在 {at} 保存的文件"),
    "typed": Said("{where} starts it so: {line}", "{where} 里这样启动它：{line}"),
    "typed_so": Said("as {where} starts it", "按 {where} 的写法启动"),
    "spawns": Said("it starts its ranks itself", "它自己启动多个进程"),
    "trainer": Said("the words and keys are those of {name}", "这些词和键属于 {name}"),
    "reads_links": Said(
        "folders of the code that it reads from where it starts: links to them in the cell's own",
        "它从启动目录读取的代码文件夹：在 cell 自己的目录里建立指向它们的链接",
    ),
    "tracker": Said(
        "what its tracker leaves, carried beside the result", "跟踪工具留下的文件，随结果一起带回"
    ),
    "tracker_secret": Said(
        "{name} is imported: where it is used, write secrets: [{secret}]",
        "导入了 {name}：如果使用它，请写 secrets: [{secret}]",
    ),
    "env_of": Said(
        "a tracker without its server, or where its modules lie",
        "跟踪工具离线运行，或模块所在位置",
    ),
    "default_epochs": Said("where a queue line gives none", "queue 的行里没有写时用它"),
    "newest": Said("the newest of what it saves", "它所保存的最新一个"),
    "only_with_checkpoint": Said("only where there is a checkpoint", "只在有检查点时使用"),
    "short": Said(
        "what makes a run short enough to try each cell on a CPU",
        "让运行足够短，好在 CPU 上试跑每个 cell",
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
    "ranks_unknown": Said(
        "does {script} form a group of ranks? It was not seen; if it does: torchrun",
        "{script} 会建立多进程组吗？没有看到；如果会，请写 torchrun",
    ),
    "saves_unknown": Said(
        "what does {script} save? Nothing that was read says it; name it, as smoke shows it",
        "{script} 保存什么？读到的代码里没有；请按 smoke 显示的填写",
    ),
    "saved_as": Said(
        "under which name is the model saved ({at})? It was not seen; smoke shows it",
        "模型以什么名字保存（{at}）？没有看到；smoke 会显示",
    ),
    "saved_where": Said(
        "does {name} lie right in the cell's folder? How the path begins was not seen ({at});"
        " smoke shows it",
        "{name} 直接在 cell 的目录里吗？没有看到路径的开头（{at}）；smoke 会显示",
    ),
    "goes_on": Said(
        "does {flag} go on at the epoch ({at})? Nothing but weights is seen to be loaded; if it"
        " does not, leave resume out",
        "{flag} 会从当时的 epoch 继续吗（{at}）？只看到加载权重；如果不会，请去掉 resume",
    ),
    "weights_alone": Said(
        "does {flag} go on at the epoch ({at})? It is seen to load weights alone, so resume is left"
        " out and a killed cell begins anew",
        "{flag} 会从当时的 epoch 继续吗（{at}）？看到它只加载权重，所以没有写 resume，"
        "被终止的 cell 会从头开始",
    ),
    "word_is_yours": Said(
        "{word} stands for something of yours: write it", "{word} 代表你自己的值：请填写"
    ),
    "path_is_yours": Said(
        "{path} does not lie here: write where it lies on the box, such as below $BOXCAR_DATA_DIR",
        "{path} 不在这里：请写它在机器上的位置，例如 $BOXCAR_DATA_DIR 之下",
    ),
    "flags_unseen": Said(
        "{script} takes flags that were not seen: boxcar init --run-help shows them",
        "{script} 接受没有看到的参数：boxcar init --run-help 可以列出它们",
    ),
    "by_position": Said(
        "{script} reads its words by position: add them to command",
        "{script} 按位置读取参数：请把它们加到 command",
    ),
    "reads_here": Said(
        "{script} names {path}, which lies here; it starts in each cell's own folder, where nothing"
        " does: where it only reads there, write links: with that folder; else give it the whole "
        "path",
        "{script} 里写着 {path}，它在这个文件夹里；而脚本在每个 cell 自己的空目录里启动："
        "若只是读取，请在 links: 写上那个目录；否则请改成完整路径",
    ),
    "add_flag": Said(
        "{flag} has to be given ({at}): add it to command",
        "必须给出 {flag}（{at}）：请加到 command",
    ),
    "prints": Said(
        "numbers that the script prints or writes (line {lines}); take out what is no result",
        "脚本打印或写出的数值（第 {lines} 行）；不是结果的请删掉",
    ),
}
