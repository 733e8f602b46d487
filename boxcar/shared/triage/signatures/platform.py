"""What the platform, the scheduler or a signal says. Data."""

from __future__ import annotations

from boxcar.shared.sentence import mark
from boxcar.shared.triage.evidence import Course
from boxcar.shared.triage.signature import STEPD, Signature, Where


def _code(number: int) -> str:
    """A signal's number as an exit code, as launchers write it."""
    ended = r"exitcode *:|return code =|(?:exit(?:ed|s)?(?: with)? codes?|died|crashed)[^\n]{0,16}"
    return rf"(?:(?:{ended})[ (]-|\bWTERMSIG ){number}\b"


SIGNATURES = (
    Signature(
        "TIME_LIMIT",
        Course.TIME_LIMIT,
        r"DUE TO TIME LIMIT|CANCELLED[^\n]{0,80}TIME ?LIMIT"
        r"|\bTIME ?LIMIT\b[^\n]{0,30}(?:reached|exceeded)|DeadlineExceeded"
        r"|exceed(?:ed|ing) (?:the |its )?(?:wall ?(?:time|clock)|time limit)"
        r"|walltime \d+ exceeded|TERM_RUNLIMIT"
        r"|activeDeadlineSeconds|Job has reached .{0,20}time limit|State=TIMEOUT"
        r"|JobState=TIMEOUT",
        mark("it reached its time limit"),
        mark("request more time, or let it resume from its checkpoint"),
        where=Where.ANYWHERE,
    ),
    Signature(
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
        mark("the platform took the box back"),
        mark("launch again once a box is available: it resumes from its checkpoint"),
        types="launch",
        where=Where.ANYWHERE,
        waits_s=(1.0, 1.0, 10.0, *[60.0] * 20),
    ),
    Signature(
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
        mark("its node failed"),
        mark("nothing: it resumes from its checkpoint, on another node if there is one"),
        where=Where.ANYWHERE,
        waits_s=(60.0, 300.0),
    ),
    Signature(
        "EVICTED",
        Course.RESUME_SAME,
        r"(?:Reason|Status|phase|STATUS)\W{1,12}Evicted|\b[Pp]od\b[^\n]{0,120}\b[Ee]victed\b"
        r"|The node was low on resource|The node had condition: \[(?:Disk|Memory|PID)Pressure",
        mark("Kubernetes evicted it"),
        mark("nothing at first: it is retried, usually on another node"),
        where=Where.LINE,
        waits_s=(60.0, 300.0),
        is_general=True,
    ),
    Signature(
        "TERM",
        Course.RESUME_SAME,
        r"Received 15 death signal|got signal: 15\b|Received SIGTERM|[Bb]ypassing sigterm"
        r"|Signal 15 \(SIGTERM\) received|[Cc]aught signal 15|[Rr]eceived signal (?:15|SIGTERM)"
        r"|by signal 15|\d Terminated\b|SIGTERM received|^Terminated$"
        r"|DUE TO JOB REQUEUE|Job deleted at request of"
        r"|CANCELLED AT \S+(?: DUE to SIGNAL [^*\n]+)? \*\*\*|Signal handler called with signal 15",
        mark("it was terminated from outside (SIGTERM)"),
        mark("nothing: it is retried from its checkpoint"),
        where=Where.LINE,
        waits_s=(1.0, 60.0),
        is_symptom=True,
    ),
    Signature(
        "BUS",
        Course.FIX_CONFIG,
        r"\bSIGBUS\b|Bus error|" + _code(7),
        mark("a bus error: usually /dev/shm or the disk of a memory-mapped file was full"),
        mark("use fewer data loader workers or a larger /dev/shm"),
        where=Where.LINE,
        explained_by=("DP15",),
    ),
    Signature(
        "SEGV",
        Course.RESUME_SAME,
        r"[Ss]egmentation fault|\b[Ss]egfault\b|SIGSEGV|" + _code(11) + r""
        r"|exit\w* (?:with )?(?:code|status)[ :=]*(?:139|3221225477|-1073741819)\b"
        r"|Fatal Python error: Segm"
        r"|double free or corruption|free\(\): invalid|corrupted (?:size|double-linked)"
        r"|stack smashing detected|fatal exception: access violation|0xC0000005"
        r"|malloc\(\): (?:corrupt|invalid|unaligned)|munmap_chunk|段错误",
        mark("a segmentation fault"),
        mark("nothing at first: it is retried once; if it recurs, a library does not match"),
        where=Where.LINE,
        waits_s=(10.0,),
        is_general=True,
    ),
    Signature(
        "ILL",
        Course.STOP_QUEUE,
        r"Illegal instruction|SIGILL|" + _code(4),
        mark("a program was built for another processor"),
        mark("install a wheel for this processor, or use another box"),
        where=Where.LINE,
    ),
    Signature(
        "137-N",
        Course.RESUME_SAME,
        r"Signal 9 \(SIGKILL\) received|" + _code(9) + r"|exit ?code:? ?(?:-9"
        r"|137)\b"
        r"|(?:[Kk]illed by|exited on) signal 9|: task \d+: Killed"
        r"|status code:? (?:137|-9)\b|[\])%] ?Killed\s*$|died or was killed"
        r"|^(?:[^\n:]{1,80}: (?:line \d+: )?)?(?:\s*\d+ )?Killed\b"
        r"|SIGKILL\b|line \d+: +\d+ Killed\b|Worker unexpectedly exits|exited with (?:code"
        r"|status) (?:137|-9)|已杀死",
        mark("it was killed from outside (SIGKILL)"),
        mark(
            "nothing at first; if it recurs at the same place, suspect memory: check the box's "
            "memory"
        ),
        where=Where.LINE,
        waits_s=(1.0, 60.0),
        is_general=True,
    ),
    Signature(
        "FPE",
        Course.FIX_CODE,
        r"[Ff]loating point exception|SIGFPE|" + _code(8),
        mark("a division by zero in compiled code (SIGFPE)"),
        mark("look for an empty batch or a size of 0; the stack above names the call"),
        where=Where.LINE,
    ),
    Signature(
        "ABRT",
        Course.RESUME_SAME,
        r"SIGABRT|Fatal Python error: |libc\+\+abi: terminating|breakpoint trap|LLVM ERROR"
        r"|^(?!\S+Error: )[^\n]*Check failed: |(?:exitcode *:"
        r"|return code =) -6\b|terminate called"
        r"|: Assertion [`'\"][^\n]{1,200}['\"] failed"
        r"|Aborted \(core dumped\)|core dumped",
        mark("it was aborted (SIGABRT)"),
        mark("nothing at first: it is retried once; the lines above say why"),
        where=Where.LINE,
        waits_s=(10.0,),
        is_general=True,
        is_symptom=True,
    ),
)
