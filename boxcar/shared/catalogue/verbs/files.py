"""What is wrong with a person's files: job.yaml, a profile, a line of a queue."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "at": Said("{at}{text}", "{at}{text}"),
    "of": Said("{head}: {text}", "{head}：{text}"),
    # --- YAML
    "empty": Said("{file}: the file is empty", "{file}：文件是空的"),
    "no_quote": Said("the quote that opens here is never closed", "这里的引号只有开头，没有结尾"),
    "no_bracket": Said(
        "the bracket that opens here is never closed", "这里的括号只有开头，没有结尾"
    ),
    "tab": Said(
        "a tab stands where only spaces may: indent with spaces",
        "这里只能用空格，却有一个 tab：请用空格缩进",
    ),
    "no_yaml": Said(
        "not YAML: {why}; a value that begins with one of {{ [ * & ! @ % ` or contains ': ' must "
        "be quoted",
        "不是 YAML：{why}；以 {{ [ * & ! @ % ` 之一开头、或含有 ': ' 的值必须加引号",
    ),
    "unknown_key": Said("unknown key {key!r}{near}", "没有 {key!r} 这个键{near}"),
    "no_key": Said("the key {key!r} is missing", "缺少键 {key!r}"),
    "twice": Said("the key {key!r} is already on line {line}", "键 {key!r} 在第 {line} 行已经有了"),
    "expected": Said("expected {what}, found {found}", "应为 {what}，实际是 {found}"),
    "at_least": Said("at least {n}", "不小于 {n}"),
    "at_most": Said("at most {n}", "不大于 {n}"),
    "a whole number": Said("a whole number", "整数"),
    "a smaller whole number": Said("a smaller whole number", "更小的整数"),
    "text": Said("text", "文本"),
    "a list": Said("a list", "列表"),
    "keys with values": Said("keys with values", "键和值"),
    "nothing": Said("nothing", "空"),
    "placeholder": Said(
        "unknown placeholder {name}{near}; known: {known}. A brace itself is written twice",
        "没有占位符 {name}{near}；现有：{known}。要写花括号本身就写两遍",
    ),
    "no_artifacts": Said(
        "say what a finished cell must hold, such as artifacts: [best.pth]; artifacts: [] where "
        "its log is all",
        "请写出完成的 cell 必须留下的文件，例如 artifacts: [best.pth]；只有日志时写 artifacts: []",
    ),
    "no_command": Said(
        "expected the train script and its flags, found nothing",
        "应为训练脚本和它的参数，实际是空的",
    ),
    "no_queues": Said(
        "expected at least one, such as queues: {{queues/queue_1.txt: box-a}}",
        "至少要有一个，例如 queues: {{queues/queue_1.txt: box-a}}",
    ),
    "run_name": Said(
        "expected 1 to 63 of a-z, 0-9 and -, beginning with a letter or digit; found {found}",
        "应为 1 到 63 个 a-z、0-9 或 -，以字母或数字开头，实际是 {found}",
    ),
    "launcher_first": Said(
        "leave {word!r} out: the launcher is put before the command",
        "请去掉 {word!r}：启动器会自动加在命令前面",
    ),
    # --- what the job names
    "link_name": Said(
        "{name} is not a name below {{out}}: write a folder's name, such as data, or a name and "
        "its folder of the code: - data: datasets/cifar",
        "{name} 不是 {{out}} 下的名字：请写一个目录名，如 data；或写名字和它在代码里的目录："
        "- data: datasets/cifar",
    ),
    "links_in_code": Said(
        "links lie in {{out}}, and the command starts in the code folder, which has them: write "
        "workdir: out, or leave links out",
        "links 建在 {{out}} 里，而命令在代码目录里启动，那里本来就有：请写 workdir: out，"
        "或去掉 links",
    ),
    "no_link_folder": Said(
        "there is no folder {name!r} in the code folder {code}",
        "代码目录 {code} 里没有目录 {name!r}",
    ),
    "link_is_named": Said(
        "{name!r} is a link to the code, and {key} looks for {path!r} there: what is written into "
        "a cell's result is not a link",
        "{name!r} 是指向代码的链接，而 {key} 要在那里找 {path!r}：cell 的结果不能写进链接",
    ),
    "link_stays": Said(
        "{name}: nothing in this folder would be sent, so links cannot lead there: let it travel, "
        "or read it below $BOXCAR_DATA_DIR",
        "{name}：这个目录里没有文件会被发送，links 无法指向它：请让它随代码发送，"
        "或放到 $BOXCAR_DATA_DIR 下读取",
    ),
    "no_script": Said(
        "there is no script {name!r} in the code folder {code}{near}",
        "代码目录 {code} 里没有脚本 {name!r}{near}",
    ),
    "no_config": Said(
        "there is no config {name!r} in {code}{near}", "{code} 里没有配置 {name!r}{near}"
    ),
    "untouched": Said("{text}. No file was changed", "{text}。没有改动任何文件"),
    "no_cell": Said(
        "no cell yet; write <cfg> <task> [epochs], one per line: {files}",
        "还没有 cell；请在队列文件里每行写一个 <cfg> <task> [epochs]：{files}",
    ),
    "in_two": Said(
        "the cell {name!r} is already in {other}; two cells cannot share a name: give one another, "
        "name=..., or take one line out",
        "cell {name!r} 在 {other} 里已经有了；两个 cell 不能同名：请用 name=... 给其中一个改名，"
        "或删去一行",
    ),
    "no_queue_file": Said(
        "the queue file is not there{near}; write one, <cfg> <task> [epochs] a line, or leave it "
        "out",
        "没有这个队列文件{near}；请写一个，每行 <cfg> <task> [epochs]，或去掉这一项",
    ),
    "queue_unreadable": Said("the queue file cannot be read: {why}", "读不到这个队列文件：{why}"),
    "no_folder": Said(": there is no folder {folder}", "：没有目录 {folder}"),
    # --- a line of a queue
    "few_fields": Said(
        "expected <cfg> <task> [epochs], found {n} {n:field|fields}; the task is one word of your "
        "choice, and a field with spaces stands in quotes",
        "应为 <cfg> <task> [epochs]，实际有 {n} 个字段；task 是你自选的一个词，"
        "含空格的字段要加引号",
    ),
    "epochs": Said(
        "epochs must be a whole number of at least 1, found {found}",
        "epoch 数应为不小于 1 的整数，实际是 {found}",
    ),
    "same_name": Said(
        "the cell {name!r} is already on line {line}; two cells cannot share a name: give this one "
        "another, with name=... behind task and epochs",
        "cell {name!r} 在第 {line} 行已经有了；两个 cell 不能同名：请在 task 和 epoch 数之后用 "
        "name=... 另起一个名字",
    ),
    "last_line": Said(
        "{path}: its last line has no line feed, and may still be typed",
        "{path}：最后一行没有换行符，可能还在输入",
    ),
    "last_line_then": Said(
        "Look again: it counts once the file has stood still for {seconds} s",
        "请稍后再看：文件 {seconds} 秒内没有变化，这一行就算数",
    ),
    "so_is": Said("{text}; so is line {line}", "{text}；第 {line} 行也是"),
    "so_are": Said(
        "{text}; so are {n} more lines, the last is line {line}",
        "{text}；另有 {n} 行也是，最后是第 {line} 行",
    ),
}
