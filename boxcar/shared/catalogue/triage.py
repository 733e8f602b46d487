"""What each failure is (`triage.is.ID`) and what to do about it (`triage.do.ID`); the classes, what
follows from each, and the ladders of what to try.
"""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said
from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.ladders import LADDERS
from boxcar.shared.triage.signatures.agents_own import AGENTS_OWN
from boxcar.shared.triage.signatures.all_rows import SIGNATURES

# What a class is called where there is room for two words.
NAMES = {
    Course.RESUME_SAME: Said("tried again", "重试"),
    Course.WAIT_NETWORK: Said("network", "网络"),
    Course.OTHER_BOX: Said("bad box", "机器故障"),
    Course.FREE_SPACE: Said("disk full", "磁盘已满"),
    Course.FIX_CONFIG: Said("fix the config", "改配置"),
    Course.FIX_CODE: Said("fix the code", "改代码"),
    Course.FIX_DATA: Said("fix the data", "改数据"),
    Course.OUT_OF_MEMORY: Said("out of memory", "内存不足"),
    Course.PREEMPTED: Said("preempted", "被抢占"),
    Course.TIME_LIMIT: Said("time is up", "超时"),
    Course.STOP_QUEUE: Said("stops the queue", "停止队列"),
    Course.ASK: Said("needs you", "需要你"),
}
FOLLOWS = {
    Course.RESUME_SAME: Said(
        "the same is tried again, from its newest checkpoint where it has one",
        "同样的内容会重试；有检查点时从最新的检查点继续",
    ),
    Course.WAIT_NETWORK: Said(
        "it is tried again after longer waits; other cells go on meanwhile, and no queue is "
        "stopped",
        "较长等待后重试；期间其他 cell 照常运行，不会因此停止队列",
    ),
    Course.OTHER_BOX: Said(
        "this box takes no more cells; those that wait can be moved to another queue",
        "这台机器不再接收 cell；等待中的可移到其他队列",
    ),
    Course.FREE_SPACE: Said(
        "it is tried again once there is room; the queue ends with 3 where there is none for long",
        "有空间后重试；长时间没有空间则队列以 3 结束",
    ),
    Course.FIX_CONFIG: Said(
        "the cell fails and the queue goes on; as it is, it would fail in the same way",
        "该 cell 失败，队列继续；不改的话会以同样的方式失败",
    ),
    Course.FIX_CODE: Said(
        "the cell fails; two alike in a row within a minute stop the queue",
        "该 cell 失败；一分钟内连续两个相同的失败会停止队列",
    ),
    Course.FIX_DATA: Said(
        "the cell fails and the queue goes on; as it is, it would fail in the same way",
        "该 cell 失败，队列继续；不改的话会以同样的方式失败",
    ),
    Course.OUT_OF_MEMORY: Said(
        "the cell fails and is never tried again as it is; the queue goes on",
        "该 cell 失败，绝不照原样重试；队列继续",
    ),
    Course.PREEMPTED: Said("it resumes from its checkpoint", "会从检查点恢复"),
    Course.TIME_LIMIT: Said(
        "the cell fails; it resumes from its checkpoint where the next launch gives it more time",
        "该 cell 失败；若下次 launch 给更多时间，会从检查点恢复",
    ),
    Course.STOP_QUEUE: Said(
        "the queue stops: each cell would fail alike", "队列停止：每个 cell 都会同样失败"
    ),
    Course.ASK: Said(
        "the cell fails and the queue goes on; it needs a decision or a credential of yours",
        "该 cell 失败，队列继续；需要你的决定或凭据",
    ),
}
WHAT_TO_DO = {
    Course.RESUME_SAME: Said("nothing, while it is tried again", "重试期间无需处理"),
    Course.WAIT_NETWORK: Said("nothing, while it waits", "等待期间无需处理"),
    Course.OTHER_BOX: Said(
        "rent another box, and move its cells there", "换一台机器，并把它的 cell 移过去"
    ),
    Course.FREE_SPACE: Said("free some space, or take a larger disk", "清理空间，或换更大的磁盘"),
    Course.FIX_CONFIG: Said("correct the config or the line", "请改正配置或队列中的那一行"),
    Course.FIX_CODE: Said("fix the script, and try it here first", "修改脚本，先在本机试"),
    Course.FIX_DATA: Said("put the data right", "请修正数据"),
    Course.OUT_OF_MEMORY: Said("go down the ladder", "请按阶梯逐级尝试"),
    Course.PREEMPTED: Said("launch again when there is a box", "有机器后重新 launch"),
    Course.TIME_LIMIT: Said(
        "give it more time: time: in job.yaml", "给更多时间：job.yaml 的 time:"
    ),
    Course.STOP_QUEUE: Said("put the box right, and launch again", "修好机器后重新 launch"),
    Course.ASK: Said("say what it needs to know", "请给出所需的决定"),
}


def _plain(said: Said) -> Said:
    """What looks like a field is YAML that a person copies."""
    en, zh = (text.replace("{", "{{").replace("}", "}}") for text in said)
    return Said(en, zh)


_IS = {row.id: row.words for row in SIGNATURES} | {own.id: own.words for own in AGENTS_OWN}
_DO = {row.id: row.todo or WHAT_TO_DO[row.course] for row in SIGNATURES}
_DO |= {own.id: own.todo for own in AGENTS_OWN}
SENTENCES = {
    **{f"is.{id}": _plain(said) for id, said in _IS.items()},
    **{f"do.{id}": _plain(said) for id, said in _DO.items()},
    **{f"name.{course.value}": said for course, said in NAMES.items()},
    **{f"follows.{course.value}": said for course, said in FOLLOWS.items()},
    **{f"ladder.{name}": title for name, (title, _) in LADDERS.items()},
    **{
        f"ladder.{name}.{number}": _plain(step)
        for name, (_, steps) in LADDERS.items()
        for number, step in enumerate(steps)
    },
    "unknown": Said("nobody knows: no signature fits", "未知：没有匹配的特征"),
    "own_error": Said("the script ended with an error of its own", "脚本以自身错误结束"),
    "verdict": Said("{course} ({id}): {words}", "{course}（{id}）：{words}"),
    "reason": Said("{words}: {text}", "{words}：{text}"),
    "line": Said("  line {line}: {text}", "  第 {line} 行：{text}"),
    "said": Said("  {text}", "  {text}"),
    "then": Said("what follows: {text}", "后果：{text}"),
    "todo": Said("what to do: {text}", "怎么办：{text}"),
    "step": Said("  {n}. {text}", "  {n}. {text}"),
    "type": Said("type: {text}", "输入：{text}"),
    "more": Said("more: {link}", "详见：{link}"),
    "added": Said(
        "{path}: a row was added; read it, then push", "{path}：已添加一行；请检查后 push"
    ),
    "change_first": Said("as it is, it would fail in the same way", "不改的话，会以同样的方式失败"),
    "moved": Said(
        "{n} {n:line waits|lines wait} in {queue}, for another box: {names}; give each to another "
        "queue with {command}",
        "{queue} 中有 {n} 行在等另一台机器：{names}；逐个用 {command} 交给其他队列",
    ),
}
