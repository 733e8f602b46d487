"""What is the matter with a queue, in a sentence."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "journal_damaged": Said(
        "its journal is damaged; nothing after the damage is known", "日志损坏；损坏之后的内容未知"
    ),
    "journal_unread": Said("its journal cannot be read at the moment", "暂时读不到它的日志"),
    "lock_unasked": Said(
        "its lock cannot be asked: the agent may be alive or not",
        "无法查询它的锁：agent 可能还在运行，也可能没有",
    ),
    "unreachable": Said("{box} does not answer ({why})", "{box} 没有应答（{why}）"),
    "unreachable_since": Said(
        "{box} does not answer ({why}); its last heartbeat is {seconds} s old",
        "{box} 没有应答（{why}）；上一次心跳在 {seconds} 秒前",
    ),
    "not_started": Said("no agent has run it yet", "还没有 agent 运行过它"),
    "agent_dead": Said(
        "its agent (process {pid} on {box}) is gone without a last event, {doing}",
        "它的 agent（{box} 上的进程 {pid}）没有留下最后的记录就退出了，{doing}",
    ),
    "agent_dead_cell_runs": Said(
        "{sentence}; the cell itself still runs", "{sentence}；cell 本身仍在运行"
    ),
    "while_cell": Said("while {cell} was under way", "当时 {cell} 正在进行"),
    "between_cells": Said("between two cells", "当时处于两个 cell 之间"),
    "incomplete": Said("not every line was run: {reason}", "有的行没有运行：{reason}"),
    "done": Said("every line was run", "每一行都已运行"),
    "drained": Said("its agent ended, as it was asked to", "agent 已按要求结束"),
    "ended_by_system": Said(
        "the system told its agent to end: its job was cancelled, or its box went down",
        "系统要求它的 agent 退出：作业被取消，或机器关机",
    ),
    "no_reason": Said("it gave no reason", "没有说明原因"),
    "starting": Said(
        "its agent is starting, or sending its last words", "agent 正在启动，或正在收尾"
    ),
    "trainer_dead": Said(
        "no process of {cell} is left, and its agent did not say so",
        "{cell} 的进程已不在，而 agent 没有报告",
    ),
    "stalled_agent": Said(
        "its agent holds the lock, but gave no sign for {seconds} s",
        "agent 仍持有锁，但已有 {seconds} 秒没有动静",
    ),
    "step_frozen": Said(
        "{cell} made no step for {seconds} s (expected one in {allowed} s)",
        "{cell} 已有 {seconds} 秒没有新的 step（预期 {allowed} 秒内一次）",
    ),
    "no_room": Said(
        "{cell} waits for room on {box}: make some, and it continues by itself",
        "{box} 的磁盘已满，{cell} 在等空间：腾出空间后会自动继续",
    ),
    "waits_for_network": Said(
        "{cell} waits for the network until {at}, {tries}", "{cell} 等网络恢复到 {at}，{tries}"
    ),
    "waits_to_be_tried": Said(
        "{cell} is tried again at {at}, {tries}", "{cell} 将在 {at} 重试，{tries}"
    ),
    "try_n": Said("try {n}", "第 {n} 次"),
    "try_n_of": Said("try {n} of {all}", "第 {n} 次，共 {all} 次"),
    "works_on": Said("works on {cell}", "正在运行 {cell}"),
    "waits_for_lines": Said("waits for new lines", "等待新的行"),
    "at_work_between": Said("between two cells", "处于两个 cell 之间"),
    "and_drains": Said(
        "{sentence}; it drains: nothing new starts", "{sentence}；正在排空：不再开始新的 cell"
    ),
    "and_stops": Said("{sentence}; it is stopping", "{sentence}；正在停止"),
    # --- a job waits in Slurm
    "slurm_waits": Said(
        "its job {task} waits in Slurm ({reason})", "它的作业 {task} 在 Slurm 中排队（{reason}）"
    ),
    "slurm_waits_until": Said(
        "its job {task} waits in Slurm ({reason}); Slurm expects to start it at {at}",
        "它的作业 {task} 在 Slurm 中排队（{reason}）；Slurm 预计 {at} 启动",
    ),
    "slurm_is_held": Said(
        "its job {task} waits in Slurm ({reason}): {need}",
        "它的作业 {task} 在 Slurm 中排队（{reason}）：{need}",
    ),
    # what a person has to do for it
    "slurm_time_limit": Said(
        "slurm: {{time: …}} is longer than the partition allows: shorten it",
        "slurm: {{time: …}} 超过分区允许的时限：请改短",
    ),
    "slurm_node_limit": Said(
        "the partition has no room for so much: ask for less", "超过分区的限制：请减少申请的资源"
    ),
    "slurm_partition_off": Said(
        "the partition is not in use: ask the site, or name another one",
        "该分区未启用：请联系集群管理员，或换一个分区",
    ),
    "slurm_qos_limit": Said(
        "a limit of the QOS: ask for less, or name another qos",
        "超过 QOS 的限制：请减少申请的资源，或换一个 qos",
    ),
    "slurm_qos_unknown": Said(
        "the QOS may not be used here, or is not known: name another one",
        "该 QOS 不可用或不存在：请换一个",
    ),
    "slurm_account_limit": Said(
        "a limit of the account: ask for less, or ask the site",
        "超过账户的限制：请减少申请的资源，或联系集群管理员",
    ),
    "slurm_account_unknown": Said(
        "the account may not be used here, or is not known: name another one",
        "该账户不可用或不存在：请换一个",
    ),
    "slurm_constraints": Said(
        "no node has what was asked for: see gres, mem and constraint in job.yaml",
        "没有节点满足要求：请检查 job.yaml 中的 gres、mem、constraint",
    ),
    "slurm_not_available": Said(
        "the nodes that would do are not available: ask the site, or ask for others",
        "满足要求的节点当前不可用：请联系集群管理员，或换别的节点",
    ),
    "slurm_dependency": Said("it depends on a job that failed", "它依赖的作业已失败"),
    "slurm_held_by_user": Said(
        "it was held: scontrol release it on the login node",
        "它被挂起了：请在登录节点执行 scontrol release",
    ),
    "slurm_held_by_admin": Said(
        "an administrator holds it: ask the site", "被管理员挂起：请联系集群管理员"
    ),
    "slurm_requeued_held": Said(
        "it was queued again and held: scontrol release it, or ask the site",
        "重新排队后被挂起：请执行 scontrol release，或联系集群管理员",
    ),
    "slurm_launch_failed": Said(
        "a node could not start it: scontrol release it, or ask the site",
        "节点无法启动它：请执行 scontrol release，或联系集群管理员",
    ),
    "slurm_requeued_too_often": Said(
        "it was queued again too often: scontrol release it, or ask the site",
        "重新排队次数过多：请执行 scontrol release，或联系集群管理员",
    ),
}
