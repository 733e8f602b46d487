"""What an audit finds on a Slurm cluster, and what that means for the run."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "version": Said("{version} on {where}", "{where} 上的 {version}"),
    "here": Said("this machine", "本机"),
    "defaults": Said("the cluster's defaults", "集群的默认值"),
    "sbatch_says": Said("sbatch says: {said}", "sbatch 的回答：{said}"),
    "too_long": Said(
        "{asked}, and {partition} allows {longest}", "{asked}，而 {partition} 最多允许 {longest}"
    ),
    "for_ever": Said(
        "sbatch would take it, and it would wait for ever: ask for less",
        "sbatch 会接受它，但它会一直排队：请缩短时限",
    ),
    "is_in_state": Said("{name} is {state}", "{name} 的状态是 {state}"),
    "its_jobs_wait": Said("its jobs wait", "它的作业会一直排队"),
    "not_named": Said("not named", "没有写明"),
    "default_time": Said(
        "the partition's default counts: name one as slurm: {{time: …}}",
        "将使用分区的默认值：请写明 slurm: {{time: …}}",
    ),
    "large_array": Said(
        "index {index}, and MaxArraySize is {most}", "序号到 {index}，而 MaxArraySize 是 {most}"
    ),
    "join_queues": Said("join some queue files", "请合并一些队列文件"),
    "begins_anew": Said(
        "a cell that is not through when the time limit comes begins anew: name its checkpoint as "
        "resume: in job.yaml",
        "到时限还没有跑完的 cell 会从头开始：请在 job.yaml 中用 resume: 写明它的检查点",
    ),
    "untried": Said("not tried", "没有测试"),
    "no_free_node": Said("no node was free: {problem}", "没有空闲节点：{problem}"),
    "no_python": Said(
        "{nodes}: the training's Python does not start", "{nodes}：训练用的 Python 无法启动"
    ),
    "hook_failed": Said(
        "cells go on without what the hook sets; where `module` is not found: source "
        "/etc/profile.d/modules.sh first",
        "cell 会在没有 hook 设置的情况下继续；若找不到 `module`，"
        "请先 source /etc/profile.d/modules.sh",
    ),
    "nodes": Said("{nodes}: Python {python}", "{nodes}：Python {python}"),
    "small_shm": Said(
        "set num_workers=0, or ask for more", "请设 num_workers=0，或申请更大的 /dev/shm"
    ),
    "unwritten": Said("not written", "写不进去"),
    "visible": Said("{n} visible", "可见 {n} 块"),
    "no_gpu_seen": Said(
        "the job asks for GPUs, and a job there sees none", "作业申请了 GPU，但那里的作业看不到 GPU"
    ),
    "two_won": Said(
        "two nodes won one claim: the tier is not one place for all nodes",
        "两个节点领到了同一个 cell：这个盘对各节点不是同一处",
    ),
    "one_node": Said("tried on one node", "只在一个节点上测试"),
    "no_second": Said("a second one was not free", "没有第二个空闲节点"),
    "one_winner": Said("one winner of {n} nodes", "{n} 个节点中恰有一个领到"),
    "flock_works": Said("flock works", "flock 有效"),
    "flock_fails": Said("flock fails", "flock 不可用"),
    "flock_lies": Said("flock lies", "flock 只在各节点自己有效"),
    "job_owns": Said(
        "a queue's owner is its Slurm job, so it will do", "队列归它的 Slurm 作业所有，所以没有影响"
    ),
}
