"""What `notify` says: where news of a run goes, and what came of a try."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    # --- the message that is sent
    "test_title": Said("Boxcar {run}: a test message", "Boxcar {run}：测试消息"),
    "test_from": Said("sent from {place}, {at} UTC", "发自 {place}，UTC {at}"),
    "test_then": Said(
        "If you read this, news of the run arrives here.", "看到这条消息，说明通知可以送达。"
    ),
    "laptop": Said("the laptop", "本机"),
    "its_box": Said("each box", "各机器"),
    "proof_250": Said("the server's 250", "邮件服务器的 250"),
    "box": Said("box {box}", "机器 {box}"),
    # --- how far it is
    "sending": Said(
        "sending {n} test {n:message|messages} from {place}", "正从{place}发送 {n} 条测试消息"
    ),
    # --- what came of it
    "taken": Said("taken", "已收到"),
    "refused": Said("refused", "被拒绝"),
    "later": Said("not now", "暂未收到"),
    "off": Said("off", "未启用"),
    "sent": Said("sent, not proven", "已发出，未证实"),
    "all_taken": Said(
        "{n} {n:message|messages} taken, each by the service's own answer",
        "{n} 条消息均由服务自己的应答确认收到",
    ),
    "all_sent": Said(
        "{n} {n:message|messages} sent; of those not proven look at the chat itself",
        "{n} 条消息已发出；未证实的请到聊天中查看",
    ),
    "some_not": Said(
        "{not_taken} of {n} {n:message|messages} not taken. When that is fixed",
        "{n} 条中有 {not_taken} 条未被收到。修复之后",
    ),
    "tells": Said("To see whether each of them arrives", "看每一处能否送达"),
    "nothing": Said(
        "the job has no notify:, so nobody is told anything; see docs/notify.md",
        "job 中没有 notify:，不会通知任何人；见 docs/notify.md",
    ),
    "goes_to": Said("{run}: where news goes", "{run}：通知发往"),
    "tried": Said("{run}: test messages from {place}", "{run}：从{place}发出的测试消息"),
    "proof_answer": Said("the service's own answer", "服务自己的应答"),
    "proof_2xx": Said("any 2xx", "任何 2xx"),
    # --- of a queue, in status
    "refuses": Said(
        "{queue}: {channel} refuses its messages: {why}", "{queue}：{channel} 拒绝消息：{why}"
    ),
    "set_aside": Said(
        "{queue}: {n} {n:message was|messages were} set aside, because {channel} refused each of "
        "them {times} times: {why}",
        "{queue}：{n} 条消息已搁置，{channel} 每条都拒绝了 {times} 次：{why}",
    ),
    "away": Said(
        "{queue}: {n} {n:event has|events have} not reached {channel} from here ({why}); the next "
        "look tries again",
        "{queue}：{n} 个事件未能从本机送达 {channel}（{why}）；下次查看时再试",
    ),
    "untold": Said(
        "{queue}: {n} {n:event was|events were} told to nobody yet; {command} has its box send "
        "{n:it|them}",
        "{queue}：有 {n} 个事件还没有通知到任何人；{command} 会让机器补发",
    ),
    # --- before a teardown
    "last_minute": Said(
        "delivering the last news of {n} {n:queue|queues}, for a minute at most",
        "正在投递 {n} 个队列的最后通知，最多一分钟",
    ),
    "nobody_took": Said(
        "{queue}: {n} {n:event|events} of its news were taken by nobody; they stay in its journal",
        "{queue}：有 {n} 个事件的通知无人收到；它们仍在日志中",
    ),
    "is_off": Said(
        "{endpoint}: {variable} is not set, so nothing is sent there; type: export {variable}=…",
        "{endpoint}：{variable} 未设置，不会发送；请输入：export {variable}=…",
    ),
}
