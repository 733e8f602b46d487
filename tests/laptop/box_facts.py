"""A box on which nothing is to be said, as it tells it for an audit."""

from __future__ import annotations

from typing import Any

from boxcar.shared.files import codec
from boxcar.shared.wire.facts import Facts

A100 = {"name": "NVIDIA A100-SXM4-80GB", "memory_total_bytes": 81920 * 2**20}


def folder(path: str, mount: str, **more: Any) -> dict[str, Any]:
    common = {"path": path, "is_there": True, "is_writable": True, "device": 1}
    return common | {"mount": mount, "file_system": "ext4"} | more


def good() -> dict[str, Any]:
    return {
        "at": "2026-11-22T01:00:00.000Z",
        "hostname": "box-a",
        "boot_id": "0a0a",
        "user": "root",
        "gpus": [A100],
        "training": {
            "path": "/opt/conda/bin/python",
            "version": "3.11.7",
            "packages": {"torch": "2.9", "accelerate": None, "deepspeed": None},
            "has_cuda": True,
            "cuda": "12.8",
        },
        "memory_limit_bytes": 64 * 10**9,
        "cpu_count": 16,
        "cpu_quota_cores": 12.0,
        "shm_size_bytes": 32 * 2**30,
        "places": {
            "data": folder("/data", "/data"),
            "durable": folder("/fs", "/fs"),
            "credentials": folder("/root", "/"),
        },
        "tools": {"tmux": "/usr/bin/tmux", "setsid": "/usr/bin/setsid", "rsync": "/usr/bin/rsync"},
        "bash": "5.2.15(1)-release",
        "has_run": {"data": False, "durable": False},
    }


def facts_of(told: dict[str, Any]) -> Facts:
    """As they come from a box."""
    return codec.decode(Facts, told, "box-a")
