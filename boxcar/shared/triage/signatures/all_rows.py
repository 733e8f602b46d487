"""All rows, in the order of what outranks what: a dead GPU explains everything below it."""

from __future__ import annotations

from boxcar.shared.catalogue.sentence import Said
from boxcar.shared.triage.signature import Signature
from boxcar.shared.triage.signatures import (
    clusters,
    code,
    data_and_state,
    devices,
    disks,
    installed,
    memory,
    network,
    platform,
    pythons_own,
    ranks,
)

TOPICS: tuple[tuple[Said, tuple[Signature, ...]], ...] = (
    (Said("GPUs and drivers", "GPU 与驱动"), devices.SIGNATURES),
    (Said("Platforms and signals", "平台与信号"), platform.SIGNATURES),
    (Said("Schedulers and containers", "调度器与容器"), clusters.SIGNATURES),
    (Said("Disks", "磁盘"), disks.SIGNATURES),
    (Said("Memory", "内存"), memory.SIGNATURES),
    (Said("Checkpoints, numbers and data", "检查点、数值与数据"), data_and_state.SIGNATURES),
    (Said("Several ranks", "多个 rank"), ranks.SIGNATURES),
    (Said("Networks, hubs and trackers", "网络、仓库与跟踪服务"), network.SIGNATURES),
    (Said("What is installed", "已安装的环境"), installed.SIGNATURES),
    (Said("Config and code", "配置与代码"), code.SIGNATURES),
    (Said("The script's own errors", "脚本自身的错误"), pythons_own.SIGNATURES),
)
SIGNATURES = tuple(row for _, rows in TOPICS for row in rows)
BY_ID = {row.id: row for row in SIGNATURES}
