"""What `listen` says, and what is said of webhooks that would not arrive."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said

SENTENCES = {
    "here": Said("listening at {url}  (Ctrl-C ends it)", "正在监听 {url}  （按 Ctrl-C 结束）"),
    "through": Said(
        "{box}: its own 127.0.0.1:{port} leads here",
        "{box}：该机器上的 127.0.0.1:{port} 已通到这里",
    ),
    "exports": Said("Where you launch, type:", "在执行 launch 的终端里输入："),
    "count": Said("events: {received}; came again: {again}", "收到事件：{received}；重复：{again}"),
    "cut": Said(
        "{box}: the connection was cut; events wait on the box, and this tries again",
        "{box}：连接已断开；事件会留在机器上等待，正在重连",
    ),
    "again": Said("{box}: the connection is there again", "{box}：连接已恢复"),
    "loopback": Said(
        "the webhooks' address {address} is each box itself, not this machine, so that {boxes} "
        "would reach nobody. Listen through them, and type where you launch what that "
        "prints",
        "webhook 地址 {address} 指向的是机器自身而不是本机，{boxes} 发出的消息没有人能收到。"
        "请经由这些机器监听，并在执行 launch 的终端里输入它打印的内容",
    ),
    "private": Said(
        "the webhooks' address {address} is one of a private network, which a rented box mostly "
        "cannot reach. If {boxes} cannot, listen through them",
        "webhook 地址 {address} 属于内网，租来的机器多半访问不到。如果 {boxes} 访问不到，"
        "请经由这些机器监听",
    ),
}
