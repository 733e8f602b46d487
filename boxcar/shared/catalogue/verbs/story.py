"""Why a cell is where it is, and what happened to it: `explain --cell`."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    # --- where it stands
    "where": Said(
        "{cfg} {task}, {epochs}; in {queue}{index}, on {box}",
        "{cfg} {task}，{epochs}；在 {queue}{index}，机器 {box}",
    ),
    "other_copy": Said("{path} is not as it is on the tier", "{path} 与持久盘上的不一致"),
    "index": Said(", index {index}", "，序号 {index}"),
    "epochs_of_job": Said("epochs as the job says", "epoch 数按 job"),
    "state_unknown": Said(
        "state unknown: the journal that may hold it cannot be read",
        "状态未知：可能记录了它的日志读不到",
    ),
    "dropped": Said(
        "dropped: it never ran, and its line is commented out",
        "已移除：从未运行，它的那一行已被注释掉",
    ),
    "failed": Said(
        "failed ({failure}): {reason}; {action}; {spent}",
        "失败（{failure}）：{reason}；{action}；{spent}",
    ),
    "damaged": Said(
        "{word}: {state} in its journal, but {damage}; {spent}",
        "{word}：日志中是{state}，但 {damage}；{spent}",
    ),
    "so_far": Said("{state}; {spent}", "{state}；{spent}"),
    "spent": Said("{n} {n:attempt|attempts}, {time}", "尝试 {n} 次，用时 {time}"),
    "blocked": Said("blocked by {by}, which {why}", "被 {by} 挡住：{why}"),
    "its_queue": Said("{queue} is {word}: {sentence}", "{queue} {word}：{sentence}"),
    # --- what is written of it
    "claim": Said("claim", "领取"),
    "tier": Said("on the tier", "持久盘上"),
    "receipt": Said("receipt", "凭据"),
    "results": Said("in the results", "本机结果中"),
    "none_yet": Said("none yet", "还没有"),
    "torn_down": Said("not asked any more: the run was torn down", "该 run 已拆除，不再查询"),
    "unreadable": Said("cannot be read: {error}", "读不到：{error}"),
    "claimed": Said("{queue} on {box}, at {at}", "{queue}，机器 {box}，{at}"),
    "attempt_of": Said(
        "attempt {attempt} of {box}, release {release}",
        "{box} 上的第 {attempt} 次尝试，release {release}",
    ),
    "files": Said("{n} {n:file|files}", "{n} 个文件"),
    "carried": Said("{n} {n:file|files} carried", "另带回 {n} 个文件"),
    "not_carried": Said("not carried, {text}", "未带回，{text}"),
    "good": Said("good: {how}, at {at}", "完好：{how}，{at}"),
    # --- what happened
    "n_epochs": Said("{n} {n:epoch|epochs}", "{n} 个 epoch"),
    "n_ranks": Said("{n} {n:rank|ranks}", "{n} 个进程"),
    "n_files": Said("{n} {n:file|files}", "{n} 个文件"),
    "cell.claimed": Said("claimed by {queue} on {box}", "由 {queue} 领取，机器 {box}"),
    "cell.started": Said(
        "attempt {attempt} started: {cfg} {task}, {on}",
        "第 {attempt} 次尝试开始：{cfg} {task}，{on}",
    ),
    "cell.progress": Said("attempt {attempt}: {numbers}", "第 {attempt} 次尝试：{numbers}"),
    "cell.retried": Said(
        "attempt {attempt} failed after {time} ({failure}: {reason}); the same again in {wait_s} s",
        "第 {attempt} 次尝试在 {time} 后失败（{failure}：{reason}）；{wait_s} 秒后照原样重试",
    ),
    "cell.preempted": Said(
        "attempt {attempt} ended after {time}: {why}; the next launch goes on with it",
        "第 {attempt} 次尝试在 {time} 后结束（{why}）；下次 launch 会继续",
    ),
    "cell.failed": Said(
        "attempt {attempt} failed after {time} ({failure}: {reason}); {action}",
        "第 {attempt} 次尝试在 {time} 后失败（{failure}：{reason}）；{action}",
    ),
    "cell.succeeded": Said(
        "attempt {attempt} ended after {time}, and all its artifacts are there",
        "第 {attempt} 次尝试在 {time} 后结束，产物齐全",
    ),
    "cell.synced": Said(
        "published: {published}, {size}, manifest {manifest}",
        "已发布：{published}，{size}，清单 {manifest}",
    ),
    "cell.copied": Said(
        "copied to {url}, {size}, manifest {manifest}", "已复制到 {url}，{size}，清单 {manifest}"
    ),
    "cell.verified": Said("{proven}{metrics}", "{proven}{metrics}"),
    "box.warning": Said("warning: {text}", "警告：{text}"),
    "box.idle": Said(
        "attempt {attempt}: every GPU was under 10 % for {time}",
        "第 {attempt} 次尝试：所有 GPU 有 {time} 低于 10 %",
    ),
    "metrics": Said(": {text}", "：{text}"),
    "metric_note": Said("; {name}: {why}", "；{name}：{why}"),
    "beside": Said("{first}{second}", "{first}{second}"),
    "row": Said(
        "{first} … {last}, at {at} ({n} reports)", "{first} … {last}，{at}（共 {n} 次报告）"
    ),
    "proven": Said("every artifact was loaded and checked", "所有产物都已加载并检查"),
    "lent": Said(
        "lent: its result is on the laptop, proven at {at}", "借给：结果在本机，已于 {at} 验证"
    ),
    "accepted": Said(
        "accepted: verify proved it on the laptop at {at}", "已接受：verify 于 {at} 在本机验证"
    ),
    "accepted_unpickled": Said(
        "accepted: verify proved it on the laptop at {at}, {files} unpickled",
        "已接受：verify 于 {at} 在本机验证，{files} 经 unpickle 加载",
    ),
    "lent_here": Said(
        "lent: its result is on this machine, proven on {at}", "借给：结果在本机，已于 {at} 验证"
    ),
    "accepted_by": Said("accepted by verify on {at}", "verify 已于 {at} 接受"),
    "accepted_with": Said(
        "accepted by verify on {at}: {files} unpickled",
        "verify 已于 {at} 接受：{files} 经 unpickle 加载",
    ),
    "and_not_again": Said(
        "{cell}: {text}; it is not trained again", "{cell}：{text}；不会重新训练"
    ),
    # --- what follows a failure
    "is_kept": Said(
        "what it left is kept, and the next launch judges it anew; it is not trained again",
        "已保留其结果，下次 launch 重新判定；不会重新训练",
    ),
    "is_final": Said("it is not tried again under this release", "在这个 release 下不再重试"),
    "to_change": Said(
        "unless it is changed it fails in the same way", "不改的话会以同样的方式失败"
    ),
    "given_up": Said(
        "this agent gave it up; the next one tries it again", "这个 agent 已放弃；下一个会再试"
    ),
    # --- why the next command
    "next_dropped": Said(
        "nothing of it is missing; append its line to run it",
        "它什么都不缺；要运行它，请把它的那一行追加到队列末尾",
    ),
    "next_damaged": Said(
        "it is verified in its journal, but {damage}", "日志中它已验证，但 {damage}"
    ),
    "next_unread": Said(
        "a journal cannot be read; status says which", "有日志读不到；status 会说是哪一个"
    ),
    "next_verified": Said("its result is proven on the durable tier", "结果已在持久盘上验证"),
    "next_final": Said(
        "fix what it says and launch again, or give the cell up",
        "按日志改好后再 launch，或放弃这个 cell",
    ),
    "next_kept": Said(
        "put right what it says, and the next agent judges it anew",
        "按提示改正后，下一个 agent 会重新判定",
    ),
    "next_no_config": Said("its line cannot run before that is fixed", "这一行在改好之前无法运行"),
    "next_after": Said("it comes after {by}, which {why}", "它排在 {by} 之后（{why}）"),
    "next_no_agent": Said("no agent is at work in {queue}", "{queue} 没有 agent 在工作"),
    "next_turn": Said("it waits for its turn", "还没有轮到它"),
    "next_running": Said("it is running", "正在运行"),
    "next_fix": Said(
        "fix what it says; as it is, the next agent only tries it again",
        "请按日志改正；不改的话，下一个 agent 只会照样再试",
    ),
}
