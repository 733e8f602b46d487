"""Failures that the agent knows by itself, without a word of a log. Data; ids stand in journals."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said
from boxcar.shared.record import dataclass
from boxcar.shared.triage.evidence import Course


@dataclass(frozen=True)
class OwnFailure:
    id: str
    course: Course
    words: Said
    todo: Said


def _own(id: str, course: Course, words: tuple[str, str], todo: tuple[str, str]) -> OwnFailure:
    return OwnFailure(id, course, Said(*words), Said(*todo))


AGENTS_OWN = (
    _own(
        "NO-ART",
        Course.FIX_CODE,
        ("it ended with 0 and did not write all artifacts", "以 0 结束，但没有写出全部产物"),
        (
            "write them into {out}; or correct artifacts: in job.yaml alone and launch: what it "
            "left is judged anew, not trained again",
            "写到 {out}；或只改正 job.yaml 的 artifacts: 再 launch：会按已有文件重新判定，"
            "不会重新训练",
        ),
    ),
    _own(
        "UNFIT",
        Course.ASK,
        ("its result is there and cannot be published as it is", "结果已有，但无法照原样发布"),
        (
            "put right what it says and launch: it is judged anew, not trained again",
            "按提示改正后 launch：会重新判定，不会重新训练",
        ),
    ),
    _own(
        "UNCHECKED",
        Course.ASK,
        ("nobody could look into its result", "无法检查其结果"),
        (
            "put right what the check needs and launch: it is judged anew",
            "修好检查所需的环境后 launch：会重新判定",
        ),
    ),
    _own(
        "BAD-ART",
        Course.FIX_CODE,
        ("an artifact does not load, or holds NaN or lacks a key", "产物无法加载、含 NaN 或缺少键"),
        ("look at what the script writes at its end", "检查脚本结束时写了什么"),
    ),
    _own(
        "LOST",
        Course.RESUME_SAME,
        (
            "its result was lost with the scratch before it was published",
            "结果在发布前随临时盘丢失",
        ),
        ("nothing: it is trained again", "无需处理：会重新训练"),
    ),
    _own(
        "GONE",
        Course.RESUME_SAME,
        ("the attempt ended without a record: it was killed", "attempt 没有留下记录：被杀死"),
        ("nothing: it is tried again from its checkpoint", "无需处理：会从检查点重试"),
    ),
    _own(
        "WRAPPER",
        Course.STOP_QUEUE,
        ("run_one.sh ended before the launcher started", "run_one.sh 在启动器开始前就结束了"),
        (
            "look at the hook and at training_python on the box",
            "检查机器上的 hook 与 training_python",
        ),
    ),
    _own(
        "CODE",
        Course.FIX_CODE,
        ("a file of the release was changed while it ran", "运行期间 release 的文件被改动"),
        ("write into {out}, or into files of its own", "请写到 {out}，或写自己的文件"),
    ),
    _own(
        "NOCFG",
        Course.FIX_CONFIG,
        ("its line cannot be run as it is", "这一行无法照原样运行"),
        ("correct the line, and push", "改正该行后 push"),
    ),
    _own(
        "RANKS",
        Course.FIX_CONFIG,
        ("another number of ranks was formed than was asked for", "实际 rank 数与要求不符"),
        (
            "set nproc_per_node, and leave it out of the command",
            "设置 nproc_per_node，不要写在 command 中",
        ),
    ),
    _own(
        "RESUME",
        Course.RESUME_SAME,
        (
            "the newest checkpoint may not load: an older one is tried",
            "最新检查点可能无法加载：改试更早的",
        ),
        (
            "nothing; if the older one fails too, the newest is put back",
            "无需处理；若更早的也失败，最新的会放回",
        ),
    ),
    _own(
        "EXIT42",
        Course.FIX_CODE,
        ("the script asked not to be retried (exit code 42)", "脚本要求不再重试（退出码 42）"),
        ("fix what its log says, and push", "按日志修正后 push"),
    ),
    _own(
        "EXIT43",
        Course.STOP_QUEUE,
        ("the script asked for the queue to stop (exit code 43)", "脚本要求停止队列（退出码 43）"),
        ("fix what its log says, and launch", "按日志修正后 launch"),
    ),
    _own(
        "EXIT3",
        Course.FREE_SPACE,
        (
            "the script found too little disk space (exit code 3)",
            "脚本发现磁盘空间不足（退出码 3）",
        ),
        ("free some, and launch", "清理空间后 launch"),
    ),
    _own(
        "EXIT75",
        Course.RESUME_SAME,
        ("the script said: try again later (exit code 75)", "脚本要求稍后重试（退出码 75）"),
        ("nothing: it is tried again", "无需处理：会重试"),
    ),
    _own(
        "EXIT85",
        Course.PREEMPTED,
        (
            "it was asked to leave, or left with exit code 85 and a newer checkpoint",
            "被要求离开，或保存新检查点后以 85 退出",
        ),
        ("launch again when there is a box", "有机器后重新 launch"),
    ),
    _own(
        "UNASKED",
        Course.FIX_CODE,
        (
            "it left with exit code 85 unasked, and saved no checkpoint",
            "无人要求却以退出码 85 离开，且没有保存检查点",
        ),
        (
            "save what resume: names before you leave with 85, or leave with another code",
            "以 85 退出前先保存 resume: 所指的检查点，或改用其他退出码",
        ),
    ),
    _own(
        "RANKS-ALIVE",
        Course.RESUME_SAME,
        (
            "the launcher ended with 0 while ranks of it still ran",
            "启动器以 0 结束，但它的 rank 仍在运行",
        ),
        (
            "nothing: it is tried again; was the launcher's own process killed?",
            "无需处理：会重试；启动器自身的进程是否被杀死？",
        ),
    ),
)
