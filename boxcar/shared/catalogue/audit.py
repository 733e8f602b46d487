"""What an audit finds on the boxes, and what that means for the run."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said, sentence_or_text

SENTENCES = {
    # --- the table
    "ok": Said("OK", "正常"),
    "warn": Said("warn", "警告"),
    "refuse": Said("refuse", "拒绝"),
    "all": Said("all", "全部"),
    "line": Said("{verdict}: {boxes}: {what}: {found}", "{verdict}：{boxes}：{what}：{found}"),
    "line_because": Said(
        "{verdict}: {boxes}: {what}: {found}. {reason}",
        "{verdict}：{boxes}：{what}：{found}。{reason}",
    ),
    "unfit": Said(
        "{queue}: was not launched: the audit refuses {box}. When that is fixed",
        "{queue}：没有启动：{box} 未通过检查。修复之后",
    ),
    "refused": Said(
        "{n} refused ({boxes}). Fix that, then", "{n} 项被拒绝（{boxes}）。请先修复，然后"
    ),
    # --- what was looked at
    "box": Said("box", "机器"),
    "clock": Said("clock", "时钟"),
    "GPU": Said("GPU", "GPU"),
    "training Python": Said("training Python", "训练用的 Python"),
    "memory": Said("memory", "内存"),
    "host name": Said("host name", "主机名"),
    "data tier": Said("data tier", "数据盘"),
    "durable tier": Said("durable tier", "持久盘"),
    "credentials": Said("credentials", "凭据文件"),
    "detach": Said("detach", "后台运行"),
    "tier shared": Said("tier shared", "持久盘共享"),
    "claims": Said("claims", "独占领取"),
    "other runs": Said("other runs", "其他 run"),
    "second home": Said("second home", "第二存储"),
    "request": Said("request", "申请"),
    "time": Said("time", "时限"),
    "partition": Said("partition", "分区"),
    "array": Said("array", "数组作业"),
    "resume": Said("resume", "续跑"),
    "node": Said("node", "节点"),
    "hook": Said("hook", "hook"),
    "GPUs": Said("GPUs", "GPU"),
    "tier from nodes": Said("tier from nodes", "节点写持久盘"),
    "file locks": Said("file locks", "文件锁"),
    "room": Said("room", "空间"),
    "room_of": Said("room: {places}", "空间：{places}"),
    "data": Said("data", "数据盘"),
    "durable": Said("durable", "持久盘"),
    "data_and_durable": Said("data and durable", "数据盘和持久盘"),
    # --- what was found
    "run_beside": Said("{run} ({what})", "{run}（{what}）"),
    "stranger": Said("{program} (process {pid} of {user})", "{program}（{user} 的进程 {pid}）"),
    "beside": Said(
        "two trainings on one GPU are slow, or out of memory; env: CUDA_VISIBLE_DEVICES in both "
        "jobs keeps them apart",
        "两个训练共用一块 GPU 会变慢或显存不足；"
        "在两个 job 的 env: 里都写 CUDA_VISIBLE_DEVICES 可以分开",
    ),
    "as_here": Said("as here", "与本机一致"),
    "ahead": Said("{time} ahead", "快 {time}"),
    "behind": Said("{time} behind", "慢 {time}"),
    "none": Said("none", "没有"),
    "no_answer": Said("no answer", "没有应答"),
    "no_answer_from": Said("no answer from {n} of {all}", "{all} 个中有 {n} 个没有应答"),
    "not_there": Said("not there", "没有"),
    "not_known": Said("not known", "未知"),
    "built_for": Said("built for {what}", "为 {what} 构建"),
    "the_cpu": Said("the CPU", "CPU"),
    "cores": Said("{n} {n:core|cores}", "{n} 核"),
    "of_cores": Said("{share} of {n} {n:core|cores}", "{n} 核中的 {share} 核"),
    "has_address": Said("has an address", "可以解析"),
    "no_address": Said("no address", "无法解析"),
    "folder": Said("{folder} ({file_system})", "{folder}（{file_system}）"),
    "unknown_file_system": Said("file system not known", "文件系统未知"),
    "no_program": Said("no {names}", "没有 {names}"),
    "free": Said("{size} free", "可用 {size}"),
    "free_inodes": Said("{size} free, {inodes:,} inodes", "可用 {size}，{inodes:,} 个 inode"),
    "unknown_size": Said("{n} {n:cell|cells} of unknown size", "{n} 个 cell 大小未知"),
    "reads_others": Said(
        "reads what {n} {n:other box|other boxes} wrote", "能读到另外 {n} 台机器写的内容"
    ),
    "mounted_alone": Said("no other box has it mounted", "没有其他机器挂载它"),
    "one_won": Said("one of {n} won", "{n} 台中恰有一台领到"),
    "not_tried": Said("could not be tried", "无法测试"),
    "unseen": Said("does not see {boxes}", "看不到 {boxes} 写的内容"),
    "reads_otherwise": Said(
        "reads {boxes} otherwise than written", "读到的 {boxes} 与写入的不一致"
    ),
    "unreadable": Said("{boxes} cannot read what it writes", "{boxes} 读不到它写的内容"),
    "won_by": Said("won by {winners}, read as {owners}", "领到的是 {winners}，读到的是 {owners}"),
    "nobody": Said("nobody", "无"),
    "nothing": Said("nothing", "空"),
    # --- what it means
    "own_times": Said(
        "the times in its journal are its own; set its clock, or read them with that in mind",
        "它日志里的时间是它自己的；请校准时钟，或看时间时留意这一点",
    ),
    "far_off": Said(
        "the times in its journal are its own; set its clock, or read them with that in mind. So "
        "far off, webhooks are refused as too old, and TLS may fail on the box",
        "它日志里的时间是它自己的；请校准时钟，或看时间时留意这一点。"
        "相差这么多，webhook 会因过期被拒收，机器上的 TLS 也可能失败",
    ),
    "no_gpu": Said(
        "the job asks for one (resources: gpu); rent a box that has it, or take that out",
        "job 要求 GPU（resources: gpu）；请租有 GPU 的机器，或去掉这项要求",
    ),
    "driver": Said(
        "the job asks for one (resources: gpu); rent a box that has it, or take that out. "
        "nvidia-smi is there and names none: the driver may be broken",
        "job 要求 GPU（resources: gpu）；请租有 GPU 的机器，或去掉这项要求。"
        "nvidia-smi 存在却没有列出 GPU：驱动可能有问题",
    ),
    "uses_cpu": Said("training will use the CPU", "训练将使用 CPU"),
    "name_python": Said(
        "{problem}; name the Python that has the training's packages in the profile: env: "
        "{{training_python: …}}",
        "{problem}；请在 profile 中写明装有训练依赖的 Python：env: {{training_python: …}}",
    ),
    "says_nothing": Said("it does not say what it is", "它没有说明自己的版本"),
    "install_for": Said(
        "the launcher is {launcher}; install it for {python}",
        "启动器是 {launcher}；请为 {python} 安装它",
    ),
    "hashed_there": Said(
        "on the box artifacts that need it will be hashed, and not loaded",
        "机器上需要它的产物只会校验哈希，不会加载",
    ),
    "cpu_torch": Said(
        "this torch cannot use the GPU: it was built for the CPU, or for a newer driver",
        "这个 torch 用不了 GPU：它是 CPU 版，或需要更新的驱动",
    ),
    "little_memory": Said(
        "a training with workers needs more; cells may be killed",
        "带 worker 的训练需要更多内存；cell 可能被杀掉",
    ),
    "little_cpu": Said(
        "less than one core: loading data will hold the GPU up",
        "不到一个核：数据加载会拖住 GPU",
    ),
    "no_host_name": Said(
        "the box does not find itself by its name ({problem}), so several ranks may hang when they "
        'connect; type there: echo "127.0.0.1 $(uname -n)" >> /etc/hosts',
        "机器无法解析自己的主机名（{problem}），多个进程建立连接时可能卡住；请在那里执行："
        'echo "127.0.0.1 $(uname -n)" >> /etc/hosts',
    ),
    "more_shm": Said(
        "{why}; rent the box with more (docker: --shm-size; Kubernetes: an emptyDir of medium "
        "Memory on /dev/shm), or set num_workers: 0",
        "{why}；请租 /dev/shm 更大的机器（docker：--shm-size；Kubernetes：在 /dev/shm 挂载 medium: "
        "Memory 的 emptyDir），或设 num_workers: 0",
    ),
    "bus_error": Said(
        "workers of a DataLoader end with 'Bus error' in so little",
        "这么小会让 DataLoader 的 worker 以 'Bus error' 结束",
    ),
    "unwritable": Said("cannot be written: {problem}", "不可写：{problem}"),
    "no_reason": Said("no reason is known", "原因未知"),
    "secrets_on_tier": Said(
        "secrets would lie on the shared tier; name another file in the profile",
        "密钥会落在共享盘上；请在 profile 中换一个文件",
    ),
    "seen_but_system": Said(
        "another box sees it, but it lies on this one's system disk and is lost with it",
        "别的机器能看到它，但它在这台机器的系统盘上，会随机器一起丢失",
    ),
    "not_mounted": Said(
        "not mounted: this is the box's own system disk, and results would be lost with the box. "
        "Attach the shared storage (often only possible when the box is rented or started)",
        "没有挂载：这是机器自己的系统盘，结果会随机器一起丢失。请挂载共享存储（多半只能在租用或开机时进行）",
    ),
    "seems_unmounted": Said(
        "not mounted, as it seems: {mount} holds the credentials too, so it is the box's own, and "
        "results would be lost with the box. Attach the shared storage (often only possible when "
        "the box is rented or started). Where {mount} is that storage, name another file for the "
        "credentials in the profile",
        "看来没有挂载：{mount} 上还有凭据文件，说明它是机器自己的盘，结果会随机器一起丢失。"
        "请挂载共享存储（多半只能在租用或开机时进行）。如果 {mount} 就是共享存储，"
        "请在 profile 中为凭据换一个文件",
    ),
    "by_tar": Said(
        "files are sent by tar over ssh: a link that drops costs the whole file",
        "文件将通过 ssh 上的 tar 传输：一旦断线，整个文件要重传",
    ),
    "no_detach": Said(
        "nothing here keeps the agent alive when the link is gone; install tmux",
        "断线后没有办法让 agent 继续运行；请安装 tmux",
    ),
    "other_detach": Said(
        "{wanted} is not there; {there} does as well, without a screen to look into",
        "没有 {wanted}；{there} 也可以，只是没有可以查看的屏幕",
    ),
    "no_bash": Said(
        "the wrappers run under it; install bash", "启动脚本要在它下面运行；请安装 bash"
    ),
    "old_bash": Said(
        "the wrappers are not tested on a version this old", "启动脚本没有在这么旧的版本上测试过"
    ),
    "may_need": Said(
        "the cells that are left may need {size} (resources: disk)",
        "剩下的 cell 可能需要 {size}（resources: disk）",
    ),
    "only_own": Said(
        "only what Boxcar itself writes was counted; say resources: {{disk: 100GB}} in job.yaml, "
        "or measure the cells",
        "只计算了 Boxcar 自己写入的部分；请在 job.yaml 中写 resources: {{disk: 100GB}}，"
        "或先测量各 cell",
    ),
    "other_storage": Said(
        "the path is the same and the storage is another one: another region or data center, or "
        "not mounted. Rent the boxes where the storage is",
        "路径相同，但不是同一个存储：地区或机房不同，或没有挂载。请在存储所在的地区租机器",
    ),
    "unbelievable": Said("no result could be believed there", "那里的结果不可信"),
    "not_exclusive": Said(
        "two boxes could run one cell at once: this file system does not create exclusively",
        "两台机器可能同时运行同一个 cell：这个文件系统不支持独占创建",
    ),
}


def named(text: str) -> str:
    """What was looked at, or a verdict; one of a newer version stays as it is."""
    return sentence_or_text(f"audit.{text}", text)
