"""What to type next, and why."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "next": Said("next: {command}  ({because})", "下一步：{command}（{because}）"),
    "nothing": Said("next: {because}", "下一步：{because}"),
    "at_work": Said("agents are at work; there is nothing to do", "agent 正在工作，无需操作"),
    "at_work_failed": Said(
        "agents are at work; {n} {n:cell|cells} failed", "agent 正在工作；{n} 个 cell 失败"
    ),
    "queued": Said(
        "Slurm starts what waits by itself; there is nothing to do",
        "排队的作业会由 Slurm 自动启动，无需操作",
    ),
    "queued_failed": Said(
        "Slurm starts what waits by itself; {n} {n:cell|cells} failed",
        "排队的作业会由 Slurm 自动启动；{n} 个 cell 失败",
    ),
    "verify": Said(
        "every cell is here; load them all before anything is torn down",
        "所有 cell 都已拉回；拆除之前先全部加载验证",
    ),
    "down": Said(
        "every cell is verified, dropped or abandoned; the boxes may go when you say so",
        "每个 cell 都已验证、移除或放弃；经你确认即可结束计费",
    ),
    "torn_down": Said(
        "the run was torn down; its results are in {folder}", "该 run 已拆除；结果在 {folder}"
    ),
    "fix_first": Said(
        "fix the local files first: {problem}. Then", "请先改好本机文件：{problem}。然后"
    ),
    # --- what is the matter with queues
    "damaged": Said(
        "{queues} {n:is|are} damaged: nothing else is safe before that",
        "{n} 个队列（{queues}）的日志损坏：在修复之前做任何事都不安全",
    ),
    "unknown": Said(
        "{queues} {n:is|are} not readable now: look again before you decide anything",
        "暂时读不到 {n} 个队列（{queues}）：再看一次，然后再做决定",
    ),
    "unreachable": Said(
        "{queues} {n:is|are} out of reach, which is not dead: look again later, and where "
        "boxes are rented at their console (balance, power, a new port)",
        "{n} 个队列（{queues}）无法连接，这不代表已死："
        "请稍后再看；租用的机器还要查看平台控制台（余额、电源、端口是否变了）",
    ),
    "trainer_dead": Said(
        "{queues} {n:is|are} without a training process: stop it, then launch it again",
        "{n} 个队列（{queues}）的训练进程已不在：先 stop，再 launch",
    ),
    "agent_dead": Said(
        "{queues} {n:is|are} without an agent: it continues where it was",
        "{n} 个队列（{queues}）的 agent 已退出：launch 后会从断点继续",
    ),
    "ended_by_system": Said(
        "{queues} {n:was|were} told to end by the system: it continues where it was",
        "{n} 个队列（{queues}）被系统结束：launch 后会从断点继续",
    ),
    "held": Said(
        "{queues} {n:is|are} held in Slurm until somebody changes something, as is said above",
        "{n} 个队列（{queues}）在 Slurm 中受阻，需要先按上面的提示修改",
    ),
    "no_room": Said(
        "{queues} {n:is|are} waiting for room on a full disk: make some, and it continues by "
        "itself",
        "磁盘已满，{n} 个队列（{queues}）在等空间：腾出空间后会自动继续",
    ),
    "above": Said(
        "{n} {n:cell|cells} not run, above where the queue was told to begin",
        "{n} 个 cell 没有运行，它们在队列指定的起点之前",
    ),
    "blocked": Said(
        "{n} {n:cell waits|cells wait} for {by}, which {why}; a launch alone begins none of them",
        "{n} 个 cell 在等 {by}（{why}）；只 launch 不会让它们开始",
    ),
    "in_no_queue": Said("is in no queue", "不在任何队列中"),
    "is_dropped": Said("is dropped", "已移除"),
    "has_failed": Said("failed", "已失败"),
    "result_damaged": Said(
        "the result of {cell} is not on the durable tier as published",
        "持久盘上 {cell} 的结果与发布时不一致",
    ),
    "results_damaged": Said(
        "the results of {n} cells are not on the durable tier as published",
        "持久盘上 {n} 个 cell 的结果与发布时不一致",
    ),
    "at_work_damaged": Said(
        "agents are at work; {damaged}. When they have ended",
        "agent 正在工作；{damaged}。等它们结束后",
    ),
    "open": Said(
        "nothing is torn down while this is open: {doubt}", "这个问题解决之前不能拆除：{doubt}"
    ),
    # --- how it stands
    "failed": Said("{n} {n:cell|cells} failed", "{n} 个 cell 失败"),
    "to_pull": Said("{n} verified {n:cell|cells} not here yet", "{n} 个已验证的 cell 还没有拉回"),
    "to_pull_failed": Said(
        "{n} verified {n:cell|cells} not here yet; {failed} {failed:cell|cells} failed",
        "{n} 个已验证的 cell 还没有拉回；{failed} 个 cell 失败",
    ),
    "unfinished": Said("{n} {n:cell|cells} not run to the end", "{n} 个 cell 还没有跑完"),
}
