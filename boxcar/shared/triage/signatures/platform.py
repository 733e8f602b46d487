"""What the platform, the scheduler or a signal says. Data."""

from __future__ import annotations

from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import STEPD, Where, row


def _code(number: int) -> str:
    """A signal's number as an exit code, as launchers write it."""
    ended = r"exitcode *:|return code =|(?:exit(?:ed|s)?(?: with)? codes?|died|crashed)[^\n]{0,16}"
    return rf"(?:(?:{ended})[ (]-|\bWTERMSIG ){number}\b"


SIGNATURES = (
    row(
        "TIME_LIMIT",
        Course.TIME_LIMIT,
        r"DUE TO TIME LIMIT|CANCELLED[^\n]{0,80}TIME ?LIMIT"
        r"|\bTIME ?LIMIT\b[^\n]{0,30}(?:reached|exceeded)|DeadlineExceeded"
        r"|exceed(?:ed|ing) (?:the |its )?(?:wall ?(?:time|clock)|time limit)"
        r"|walltime \d+ exceeded|TERM_RUNLIMIT"
        r"|activeDeadlineSeconds|Job has reached .{0,20}time limit|State=TIMEOUT"
        r"|JobState=TIMEOUT",
        ("its time was up", "时间已到"),
        ("ask for more time, or let it resume from its checkpoint", "申请更长时间，或从检查点恢复"),
        where=Where.ANYWHERE,
    ),
    row(
        "SPOT",
        Course.PREEMPTED,
        r"DUE TO PREEMPTION|[Ss]tate[=: ]+PREEMPTED\b|(?i:instance|cluster|vm|machine"
        r"|node) (?:\S+ )?(?:is|was|is being"
        r"|will be) (?:preempted|reclaimed|interrupted)|[Ss]pot (?:instance )?interruption"
        r"|[Pp]reempted by|[Pp]reempting (?:job|pod)|PreemptionByScheduler"
        r"|TerminationByKubelet|node (?:is )?shutting down|SpotInterrupt\w*"
        r"|竞价实例.{0,20}(?:回收|释放)|实例.{0,10}(?:被抢占|已回收)"
        r"|DUE to SIGNAL Terminated.{0,40}preempt|[Rr]eason[:=]\s*(?:NodeShutdown"
        r"|Preempt\w*)\s*$",
        ("the platform took the box back", "平台收回了机器"),
        (
            "launch again when there is a box: it resumes from its checkpoint",
            "有机器后重新 launch：会从检查点恢复",
        ),
        types="launch",
        where=Where.ANYWHERE,
        waits_s=(1.0, 1.0, 10.0, *[60.0] * 20),
    ),
    row(
        "NODEFAIL",
        Course.RESUME_SAME,
        r"Task launch for [^\n]{1,40} failed on node"
        rf"|{STEPD}(?:execve\(\): \S*slurm_script"
        r"|container_\w+|task_(?:prolog|epilog)|\w*prolog\w*:|Unable to create \S*TMPDIR)"
        r"|DUE TO NODE FAIL|\bNODE_FAIL\b|[Nn]ode failure"
        r"|Node \S+ (?:is )?not ?responding"
        r"|NodeLost|NodeDiedError|\b[Nn]ode has (?:crashed|died)|tasks are unhealthy"
        r"|NodeNotReady|node .{0,40}went (?:down|away)"
        r"|Lost connection to (?:node"
        r"|host)|node_failure",
        ("its node failed", "节点故障"),
        (
            "nothing: it resumes from its checkpoint, on another node where there is one",
            "无需处理：会从检查点恢复，有其他节点则在其上",
        ),
        where=Where.ANYWHERE,
        waits_s=(60.0, 300.0),
    ),
    row(
        "EVICTED",
        Course.RESUME_SAME,
        r"(?:Reason|Status|phase|STATUS)\W{1,12}Evicted|\b[Pp]od\b[^\n]{0,120}\b[Ee]victed\b"
        r"|The node was low on resource|The node had condition: \[(?:Disk|Memory|PID)Pressure",
        ("Kubernetes evicted it", "被 Kubernetes 驱逐"),
        (
            "nothing at first: it is tried again, mostly on another node",
            "先不用处理：会重试，多半在另一节点",
        ),
        where=Where.LINE,
        waits_s=(60.0, 300.0),
        is_general=True,
    ),
    row(
        "TERM",
        Course.RESUME_SAME,
        r"Received 15 death signal|got signal: 15\b|Received SIGTERM|[Bb]ypassing sigterm"
        r"|Signal 15 \(SIGTERM\) received|[Cc]aught signal 15|[Rr]eceived signal (?:15|SIGTERM)"
        r"|by signal 15|\d Terminated\b|SIGTERM received|^Terminated$"
        r"|DUE TO JOB REQUEUE|Job deleted at request of"
        r"|CANCELLED AT \S+(?: DUE to SIGNAL [^*\n]+)? \*\*\*|Signal handler called with signal 15",
        ("it was told to end from outside (SIGTERM)", "被外部要求结束（SIGTERM）"),
        ("nothing: the same is tried again from its checkpoint", "无需处理：会从检查点重试"),
        where=Where.LINE,
        waits_s=(1.0, 60.0),
        is_symptom=True,
    ),
    row(
        "BUS",
        Course.FIX_CONFIG,
        r"\bSIGBUS\b|Bus error|" + _code(7),
        (
            "a bus error: mostly /dev/shm or a disk below a mapped file was full",
            "总线错误：多为 /dev/shm 或映射文件所在磁盘已满",
        ),
        (
            "fewer workers of the data loader, or a larger /dev/shm",
            "减少 data loader 的 worker，或更大的 /dev/shm",
        ),
        where=Where.LINE,
        explained_by=("DP15",),
    ),
    row(
        "SEGV",
        Course.RESUME_SAME,
        r"[Ss]egmentation fault|\b[Ss]egfault\b|SIGSEGV|" + _code(11) + r""
        r"|exit\w* (?:with )?(?:code|status)[ :=]*(?:139|3221225477|-1073741819)\b"
        r"|Fatal Python error: Segm"
        r"|double free or corruption|free\(\): invalid|corrupted (?:size|double-linked)"
        r"|stack smashing detected|fatal exception: access violation|0xC0000005"
        r"|malloc\(\): (?:corrupt|invalid|unaligned)|munmap_chunk|段错误",
        ("a segmentation fault", "段错误"),
        (
            "nothing at first: it is tried once more; if it comes again, a library does not fit",
            "先不用处理：会再试一次；若再现则是某个库不匹配",
        ),
        where=Where.LINE,
        waits_s=(10.0,),
        is_general=True,
    ),
    row(
        "ILL",
        Course.STOP_QUEUE,
        r"Illegal instruction|SIGILL|" + _code(4),
        ("a program was built for another processor", "程序是为其他处理器编译的"),
        (
            "install a wheel for this processor, or take another box",
            "安装适合该处理器的包，或换机器",
        ),
        where=Where.LINE,
    ),
    row(
        "137-N",
        Course.RESUME_SAME,
        r"Signal 9 \(SIGKILL\) received|" + _code(9) + r"|exit ?code:? ?(?:-9"
        r"|137)\b"
        r"|(?:[Kk]illed by|exited on) signal 9|: task \d+: Killed"
        r"|status code:? (?:137|-9)\b|[\])%] ?Killed\s*$|died or was killed"
        r"|^(?:[^\n:]{1,80}: (?:line \d+: )?)?(?:\s*\d+ )?Killed\b"
        r"|SIGKILL\b|line \d+: +\d+ Killed\b|Worker unexpectedly exits|exited with (?:code"
        r"|status) (?:137|-9)|已杀死",
        ("it was killed from outside (SIGKILL)", "被外部杀死（SIGKILL）"),
        (
            "nothing at first; if it comes again at the same place, it is mostly memory: "
            "look at the box's",
            "先不用处理；若在同处再现，多为内存问题：请查看机器内存",
        ),
        where=Where.LINE,
        waits_s=(1.0, 60.0),
        is_general=True,
    ),
    row(
        "FPE",
        Course.FIX_CODE,
        r"[Ff]loating point exception|SIGFPE|" + _code(8),
        (
            "a division by zero in compiled code (SIGFPE)",
            "编译代码中除以零（SIGFPE）",
        ),
        (
            "look for an empty batch or a size of 0; the stacks above it name the call",
            "检查是否有空批次或大小为 0；上方的堆栈指出了调用处",
        ),
        where=Where.LINE,
    ),
    row(
        "ABRT",
        Course.RESUME_SAME,
        r"SIGABRT|Fatal Python error: |libc\+\+abi: terminating|breakpoint trap|LLVM ERROR"
        r"|^(?!\S+Error: )[^\n]*Check failed: |(?:exitcode *:"
        r"|return code =) -6\b|terminate called"
        r"|: Assertion [`'\"][^\n]{1,200}['\"] failed"
        r"|Aborted \(core dumped\)|core dumped",
        ("it was aborted (SIGABRT)", "进程中止（SIGABRT）"),
        (
            "nothing at first: it is tried once more; the lines above it say why",
            "先不用处理：会再试一次；原因见其上方",
        ),
        where=Where.LINE,
        waits_s=(10.0,),
        is_general=True,
        is_symptom=True,
    ),
)
