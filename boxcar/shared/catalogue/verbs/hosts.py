"""A box that does not answer over ssh: why, and what to do."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "unreachable": Said("{alias} cannot be reached: {why}", "无法连接 {alias}：{why}"),
    "unreachable_do": Said(
        "{alias} cannot be reached: {why}. {to_do}", "无法连接 {alias}：{why}。{to_do}"
    ),
    "no_address": Said("there is no address for {name}", "找不到 {name} 的地址"),
    "is_it_there": Said(
        "Is there a `Host {alias}` in ~/.ssh/config? Are you online?",
        "~/.ssh/config 中有 `Host {alias}` 吗？本机联网了吗？",
    ),
    "crowded": Said("sshd closed the connection at once ({line})", "sshd 立即关闭了连接（{line}）"),
    "few_at_a_time": Said(
        "It accepts only a few at a time (MaxStartups), or it shuts this address out for failed "
        "log-ins (OpenSSH 9.8 and newer): wait a minute, then try the same command again",
        "它同时只接受少量连接（MaxStartups），或因登录失败暂时拒绝本机地址"
        "（OpenSSH 9.8 及更新版本）：请等一分钟，再重试同一条命令",
    ),
    "jump_failed": Said("its jump host {jump} failed ({line})", "跳板机 {jump} 出了问题（{line}）"),
    "proxy_failed": Said(
        "its ProxyJump or ProxyCommand failed ({line})",
        "ProxyJump 或 ProxyCommand 出了问题（{line}）",
    ),
    "try_the_way": Said("To see it, try: {command}", "要查看原因，请试：{command}"),
    "refused": Said(
        "it refused the connection: no sshd listens at that address and port",
        "连接被拒绝：该地址和端口没有 sshd 在监听",
    ),
    "no_route": Said("there is no route to it", "没有到它的路由"),
    "no_network": Said("this machine's network does not lead there", "本机网络到不了那里"),
    "silent": Said(
        "it accepted the connection and then said nothing", "它接受了连接，然后没有任何回应"
    ),
    "nothing_through": Said(
        "nothing came back through its ProxyJump or ProxyCommand",
        "经 ProxyJump 或 ProxyCommand 没有任何回应",
    ),
    "timed_out": Said(
        "the connection timed out: the box is off, or something swallows packets",
        "连接超时：机器已关机，或数据包中途被丢弃",
    ),
    "look_at_console": Said(
        "See in the platform's console whether it runs; then try: ssh {alias} true",
        "请在平台控制台确认它在运行；然后试试：ssh {alias} true",
    ),
    "look_for_id": Said(
        "See in the platform's console whether it runs (its id there: {id}); then try: "
        "ssh {alias} true",
        "请在平台控制台确认它在运行（编号：{id}）；然后试试：ssh {alias} true",
    ),
    "cut": Said("the link was cut ({said})", "连接中断（{said}）"),
    "may_be_done": Said(
        "What was asked may have been done in part or in full; run the same command again",
        "所请求的可能已完成一部分或全部；请重试同一条命令",
    ),
    "key_refused": Said(
        "{alias} refuses your key ({why}). Expected: that `ssh {alias} true` works without a "
        "question. Check User and IdentityFile of {alias} in ~/.ssh/config, unlock the key "
        "(ssh-add), and put its public half into the platform's console",
        "{alias} 拒绝了你的密钥（{why}）。应当是 `ssh {alias} true` 不需要任何输入就能成功。"
        "请检查 ~/.ssh/config 中 {alias} 的 User 和 IdentityFile，用 ssh-add 解锁密钥，"
        "并把公钥加到平台控制台",
    ),
    "key_changed": Said(
        "the host key changed: recorded {recorded}, offered {offered}",
        "主机密钥变了：记录的是 {recorded}，对方给出 {offered}",
    ),
    "compare_key": Said(
        "{alias}: {why}. Nothing was sent. If you rented or reset this box since, compare the "
        "offered fingerprint with the platform's console and type: {forget}\n"
        "If you did not, another machine answers as {alias}: check ~/.ssh/config first",
        "{alias}：{why}。没有发送任何内容。如果你此后重新租用或重置过这台机器，"
        "请把给出的指纹与平台控制台核对，然后输入：{forget}\n"
        "如果没有，那么是另一台机器在以 {alias} 应答：请先检查 ~/.ssh/config",
    ),
}
