"""A plan for tests, of which each says only what it is about."""

from __future__ import annotations

from typing import Any

from boxcar.shared.files.plan import Artifact, Box, Plan


def make_plan(**own: Any) -> Plan:
    """Two boxes with a queue each and no cell yet; `own` are the fields that are otherwise."""
    usual: dict[str, Any] = {
        "run": "digits",
        "profile": "local",
        "durable_dir": "/durable",
        "boxes": tuple(Box(name, "/data", "/root/c.json") for name in ("box-a", "box-b")),
        "queues": {"queue_1": "box-a", "queue_2": "box-b"},
        "cells": (),
        "command": ("train.py", "{cfg}"),
        "launcher": "torchrun",
        "nproc": None,
        "cell_nproc": {},
        "epochs": 20,
        "artifacts": (Artifact("best.pth"),),
        "resume": None,
        "scratch": (),
        "env": {},
        "secrets": (),
        "linger_s": 0,
        "agent_python": "python3",
        "training_python": "python3",
    }
    return Plan(**(usual | own))
