"""What `plan` says when it ends: how much it is, and what is to be done first."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    # --- which profile, and why: the first line of each verb
    "profile": Said("profile {name}: {why}", "平台 {name}：{why}"),
    "named": Said("named by --profile", "由 --profile 指定"),
    "launched_with": Said("this run was launched with it", "此 run 是用它启动的"),
    "launched_before": Said(
        "this run was launched with it from this machine (runs.jsonl), and its results are not "
        "here any more",
        "此 run 曾在本机用它启动过（runs.jsonl），而结果目录已不在本机",
    ),
    "met_elsewhere": Said(
        "{box} was reached over ssh before (.boxcar/hosts), and nothing here says where the run "
        "{run} belongs. Name its platform: --profile NAME; or --profile local, to run it on this "
        "machine",
        "{box} 以前是通过 ssh 连接的（.boxcar/hosts），而本机没有记录 run {run} 属于哪里。"
        "请指定平台：--profile NAME；要在本机运行则用 --profile local",
    ),
    "first_used": Said("this run was first {done} with it", "此 run 最初是用它 {done} 的"),
    "audited": Said("audited", "audit"),
    "smoked": Said("smoked", "smoke"),
    "pushed": Said("pushed", "push"),
    "launched": Said("launched", "launch"),
    "settings": Said(
        "your settings name it (invoke.yaml, or the environment)",
        "由你的设置指定（invoke.yaml 或环境变量）",
    ),
    "launched_here": Said("this run was launched here", "此 run 是在本机启动的"),
    "first_candidate": Said(
        "the first of the job's candidates that fits", "job 的候选平台中第一个合适的"
    ),
    "here": Said(
        "this machine, because no other was named for this run", "本机（没有为此 run 指定其他平台）"
    ),
    # --- what the plan's tables say
    "files": Said("{n} {n:file|files}, {commit}", "{n} 个文件，{commit}"),
    "log_alone": Said(
        "none: a cell that ends with exit code 0 is done, and its log is its result",
        "无：cell 以退出码 0 结束即算完成，日志就是结果",
    ),
    "commit": Said("commit {commit}", "提交 {commit}"),
    "commit_changed": Said("commit {commit}, with changes", "提交 {commit}，另有未提交的改动"),
    "no_commit": Said("no git commit", "没有 git 提交"),
    "left_after": Said("left after {death} dies", "失去{death}后还有"),
    "a box": Said("a box", "一台机器"),
    "the durable tier": Said("the durable tier", "持久盘"),
    "this machine": Said("this machine", "本机"),
    "left_out": Said("{name} ({size}) by {rule}", "{name}（{size}），规则 {rule}"),
    "left_out_more": Said(
        "{name} ({size} or more) by {rule}", "{name}（至少 {size}），规则 {rule}"
    ),
    "smaller": Said("and {n} smaller", "以及 {n} 个更小的"),
    "on": Said("on", "开启"),
    "off": Said("off", "关闭"),
    "one_process": Said("one process", "单进程"),
    "all_gpus": Said("all GPUs, else 1", "全部 GPU，没有则为 1"),
    "on_each_box": Said(
        "{folder} on each box; results are safe once they are pulled to this machine",
        "每台机器上的 {folder}；结果拉回本机后才算安全",
    ),
    "ends_reversibly": Said("{verb} (reversible); keeps {kept}", "{verb}（可恢复）；保留 {kept}"),
    "ends_for_good": Said("{verb} (for good); keeps {kept}", "{verb}（不可恢复）；保留 {kept}"),
    "nothing_kept": Said("nothing on the platform", "平台上不留任何东西"),
    "box_rooms": Said("What each box has, and has left", "每台机器的配置和剩余空间，请看"),
    "would_do": Said("would do; {taken} comes first", "也可以，但 {taken} 排在前面"),
    "first_fitting": Said("the first that has what the job asks for", "第一个满足 job 要求的"),
    "taken": Said("taken", "选用"),
    "scratch_of": Said("scratch of {box}", "{box} 的临时盘"),
    "durable_tier": Said("durable tier", "持久盘"),
    # --- what is left of a run when something dies
    "continue": Said(
        "running cells continue from their live checkpoint",
        "正在运行的 cell 从已保存的检查点继续",
    ),
    "begin_anew": Said("running cells begin anew", "正在运行的 cell 从头开始"),
    "copied": Said(
        "{what}; what was copied to {url}, results and live checkpoints",
        "{what}；以及已复制到 {url} 的结果和检查点",
    ),
    "brought": Said(
        "what was pulled, or brought here by `watch` or cron, is not trained again; {running} "
        "where it was brought",
        "已拉回，或由 `watch`、cron 取回本机的，不会重新训练；已取回检查点的，{running}",
    ),
    "boxes_hold": Said("what the boxes hold", "各机器上的内容"),
    "of_the_tier": Said(
        "published results, on the durable tier; {running}", "持久盘上已发布的结果；{running}"
    ),
    "pulled": Said("results that were pulled to this machine", "已拉回本机的结果"),
    "nothing_left": Said("nothing: all of it is here", "什么都不剩：全部都在本机"),
    "goes_on": Said(
        "the run goes on; all is on the durable tier", "run 继续进行；一切都在持久盘上"
    ),
    "todo": Said("{at}: an open TODO: {text}", "{at}：还有一个 TODO：{text}"),
    "tracker": Said(
        "{script} imports {name}, and job.yaml has neither its secret nor a mode of it: write "
        "{lines}",
        "{script} 导入了 {name}，而 job.yaml 里既没有它的密钥，也没有设定它的模式：请写 {lines}",
    ),
    "costly_todo": Said(
        "{at}: an open TODO of {key}: {text}. A wrong one is seen only after a whole training, and "
        "this platform bills: say what is right there, take the comment out, then",
        "{at}：{key} 还有一个 TODO：{text}。写错了要等整个训练结束才会发现，而这个平台按时计费："
        "请在那里写对，删去注释，然后",
    ),
    # --- the last line
    "size": Said(
        "{cells:,} {cells:cell|cells}, {boxes} {boxes:box|boxes}",
        "{cells:,} 个 cell，{boxes} 台机器",
    ),
    "size_and_time": Said(
        "{size}, about {time} (from earlier runs)", "{size}，约需 {time}（按以往的运行估计）"
    ),
    "long_queue": Said(
        "the queue {queue} has {n} cells. Everything works beyond {most}, but all of its lines are "
        "read whenever it has changed, and the gap between two cells grows with them: finish one "
        "part of them before you append the next, or put them into several queues",
        "队列 {queue} 有 {n} 个 cell。超过 {most} 个也能运行，但队列每次改动后都要重读所有行，"
        "两个 cell 之间的间隔会随之变长：请分批追加，或拆成多个队列",
    ),
    "next": Said("{size}. Next", "{size}。下一步"),
    "not_yet": Said("{size}. Fix what is said above, then", "{size}。请先解决上述问题，然后"),
    "no_candidate": Said(
        "{at}: there is no profile {name!r}{near}; it is left out of the choice. Take it out, or "
        "write the name of one: {known}",
        "{at}：没有名为 {name!r} 的 profile{near}，选择时会被忽略。请删除它，"
        "或改成已有的名称：{known}",
    ),
}
