"""What is said by the verbs that change a run: push, drain, stop, move and repair."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    # --- drain and stop
    "nothing_runs": Said(
        "{queue}: nothing is running, so nothing was asked",
        "{queue}：没有正在运行的内容，未发出请求",
    ),
    "called_off": Said(
        "taken back before {n:it|they} ran: {tasks}. To submit {n:it|them} again, with the limits "
        "that are set by then",
        "已撤回 {n} 个尚未运行的作业：{tasks}。要重新提交（使用那时设置的限制）",
    ),
    "has_begun": Said(
        "{queue}: its job {task} no longer waits and was left alone; the same command again asks "
        "its agent",
        "{queue}：作业 {task} 已不在等待，未作改动；重复同一条命令会请求它的 agent",
    ),
    "drains": Said(
        "{queue} on {box}: ends; no further cell starts",
        "{box} 上的 {queue}：将结束，不再开始新的 cell",
    ),
    "drains_after": Said(
        "{queue} on {box}: finishes {cell}, then ends; no further cell starts",
        "{box} 上的 {queue}：跑完 {cell} 后结束，不再开始新的 cell",
    ),
    "stops": Said(
        "{queue} on {box}: ends; finished results are still proven",
        "{box} 上的 {queue}：将结束；已跑完的结果仍会验证",
    ),
    "stops_after": Said(
        "{queue} on {box}: {cell} is asked to save a checkpoint, then it ends; finished results "
        "are still proven",
        "{box} 上的 {queue}：先让 {cell} 保存检查点，然后结束；已跑完的结果仍会验证",
    ),
    "see_end": Said("To see it end", "查看结束过程"),
    "go_on_later": Said("To continue later", "以后继续"),
    "torn_down": Said(
        "the run {run!r} was torn down; nothing of it runs",
        "run {run!r} 已拆除，没有任何内容在运行",
    ),
    "not_asked": Said(
        "{queue} was not asked to {want}, {others}. The same command again asks all of them",
        "没能让 {queue} {want}，{others}。重复同一条命令会再次请求所有队列",
    ),
    "none_was_asked": Said("no queue was", "其他队列也没有"),
    "others_asked": Said("{queues} {n:was|were}", "已请求 {n} 个队列（{queues}）"),
    "left_the_job": Said(
        "{queue} ran on {box}, which has left the job and cannot be asked: put its line back into "
        "queues of job.yaml",
        "{queue} 曾在 {box} 上运行，而它已不在 job 中，无法请求：请把它放回 job.yaml 的 queues",
    ),
    # --- push
    "runs_on": Said(
        "{queue}: {cells} will run on {release}; all other cells stay on {old}",
        "{queue}：{cells} 将用 release {release} 运行；其余 cell 仍用 {old}",
    ),
    "mixed": Said(
        "{queue}: its agent runs release {old}, which lacks the configs of {cells}. They would run "
        "on {release}, in which {files} {n:differs|differ} too: other code than that of the cells "
        "before them. If that is meant",
        "{queue}：它的 agent 运行的是 release {old}，其中没有 {cells} 的配置。它们会用 {release} "
        "运行，而那里另有 {n} 个文件（{files}）也有改动："
        "与之前的 cell 不是同一份代码。如果确实要这样",
    ),
    "not_taken": Said(
        "{queue}: its agent keeps release {old}, and cannot take over {release}, whose plan has "
        "other {parts}. {cells} will wait for a relaunch",
        "{queue}：它的 agent 仍用 release {old}，无法改用 {release}："
        "两者计划中的 {parts} 不同。"
        "{cells} 要等重新 launch",
    ),
    "then_launch": Said("then launch", "然后 launch"),
    "no_config": Said(
        "{file}: the configs of these lines are in no release and not in {code}, so that they "
        "cannot run: {lines}. Add the files, or put a # before the lines; then",
        "{file}：这些行的配置不在任何 release 中，也不在 {code} 里，无法运行：{lines}。"
        "请补上文件，或在这些行前加 #；然后",
    ),
    "commented_out": Said(
        "{queue}: commented out on the tier: {line}", "{queue}：已在持久盘上注释掉：{line}"
    ),
    "ahead": Said(
        "{queue}: {n} {n:line|lines} appended on the tier; {file} lacks them",
        "{queue}：持久盘上追加过 {n} 行，而 {file} 里没有",
    ),
    "commented_there": Said(
        "{queue}: line {number} has a # on the tier and none here: {line}",
        "{queue}：第 {number} 行在持久盘上有 #，这里没有：{line}",
    ),
    "comment_here": Said(
        "{queue}: what has a # there does not run. To put it here too: {command}; after that a new "
        "line below may run the cell",
        "{queue}：持久盘上有 # 的行不会运行。要让这里一致：{command}；"
        "之后可在下面新加一行来运行该 cell",
    ),
    "run_is_over": Said(
        "the run {run!r} was torn down, and its results are kept in {folder}. Give the job another "
        "name, or move that folder away",
        "run {run!r} 已拆除，结果保留在 {folder}。请给 job 换个名字，或把该目录移走",
    ),
    "no_tier": Said(
        "the run was launched here, and {tier} is not there. Mount it, or put it back; to begin "
        "anew without what it holds, move {folder} away",
        "此 run 是在本机启动的，而 {tier} 不在。请挂载它，或把它放回原处；"
        "若不要其中的内容、从头开始，请移走 {folder}",
    ),
    # --- move
    "moved_back": Said(
        "{cell}: moved from {before} to {queue}, where it {how}",
        "{cell}：已从 {before} 移到 {queue}，在那里{how}",
    ),
    "begins_anew": Said(
        "begins anew: no checkpoint of it is within reach", "从头开始：没有可用的检查点"
    ),
    "begins_unless": Said(
        "begins anew, if its checkpoint stays as it is: {error}",
        "将从头开始，除非检查点恢复正常：{error}",
    ),
    "continues": Said("continues from its checkpoint of {at}{step}", "从 {at} 的检查点继续{step}"),
    "from_step": Said(", from step {step} or later", "，从 step {step} 或更后"),
    "last_step": Said("; the last step that was seen is {step}", "；最后看到的 step 是 {step}"),
    "untold": Said(
        "{cell} was moved to {queue}, and {box} has not been told: if it comes back by itself, it "
        "trains the cell until it is",
        "{cell} 已移到 {queue}，但还没能通知 {box}：它若自行恢复，在收到通知前会继续训练该 cell",
    ),
    "told": Said(
        "{box} was told that {cell} is {queue}'s now", "已通知 {box}：{cell} 现在归 {queue}"
    ),
    "not_told": Said(
        "{box} was not told that {cell} was moved: {why}", "没能通知 {box} {cell} 已移走：{why}"
    ),
    "is_in": Said("{cell} is in {queue}", "{cell} 在 {queue} 中"),
    "to_run_it": Said("To run it", "运行它"),
    "no_line": Said(
        "{cell}: its line is in no local queue file: take the tier's lines into it first. To see "
        "what is there",
        "{cell}：本机的队列文件中没有它的行：请先把持久盘上的行加进来。查看那里有什么",
    ),
    "published_already": Said(
        "{cell} is published, so there is nothing to move", "{cell} 已发布，没有什么可移"
    ),
    "dropped_already": Said(
        "{cell} was dropped: append its line to the queue that shall run it",
        "{cell} 已移除：请把它的行追加到要运行它的队列末尾",
    ),
    "is_at_work": Said(
        "{who} is at work on {box}, so {cell} stays: stop it first",
        "{who}正在 {box} 上工作，所以 {cell} 不动：请先停止它",
    ),
    "agent_of": Said("the agent of {queue}", "{queue} 的 agent "),
    "attempt_at": Said("an attempt at {cell}", "{cell} 的一次尝试"),
    "may_be_at_work": Said(
        "{box} does not answer, and {queue} may be at work there, so {cell} stays. Look again",
        "{box} 没有应答，{queue} 可能还在那里工作，所以 {cell} 不动。请再看一次",
    ),
    "gone_for_good": Said("only where it is gone for good", "仅当它永远不会回来时"),
    # --- launch, where an agent was asked to end
    "drain_taken_back": Said(
        "{queue}: its drain is taken back, and its agent goes on",
        "{queue}：已撤回 drain，它的 agent 会继续",
    ),
    "waits_for_end": Said(
        "{queues}: {n:was|were} asked to stop; launch waits until {n:it has|they have} ended, then "
        "starts {n:it|them} again (Ctrl-C: {n:it stays|they stay} stopped)",
        "{n} 个队列（{queues}）已被要求停止；launch 会等到结束后再重新启动（按 Ctrl-C 则保持停止）",
    ),
    "does_not_end": Said(
        "{queue}: was asked to stop and has not ended yet, so nothing was started. Once it has",
        "{queue}：已被要求停止但还没有结束，所以没有启动。等它结束后",
    ),
    # --- repair
    "repair_over": Said(
        "the run {run!r} was torn down; its results are here", "run {run!r} 已拆除；结果在本机"
    ),
    "damaged_files": Said("{run}: damaged files", "{run}：损坏的文件"),
    "damage": Said("{file}: {problem}", "{file}：{problem}"),
    "damage_aside": Said(
        "{file}: {problem}; the damaged file is beside it: {aside}",
        "{file}：{problem}；损坏的文件留在旁边：{aside}",
    ),
    "put_back": Said("put back", "已放回"),
    "can_be_put_back": Said("can be put back", "可以放回"),
    "not_proven": Said("not proven", "无法证明"),
    "to_put_back": Said("To put back what is proven", "把能证明的放回原处"),
    "nothing_proves": Said(
        "of {n} {n:file|files} nothing here proves what it was: see docs/reliability.md",
        "有 {n} 个文件，这里没有什么能证明它原来的内容：见 docs/reliability.md",
    ),
    "nothing_damaged": Said("nothing is damaged", "没有损坏"),
}
