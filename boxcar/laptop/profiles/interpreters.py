"""Where the agent's Python is looked for on a box whose profile says `agent_python: auto`."""

from __future__ import annotations

# What an image may hold, in this order. conda's may not be on the PATH of a command over ssh.
INTERPRETERS = (
    *("python3.13", "python3.12", "python3.11", "python3.10", "python3", "python"),
    *("/root/miniconda3/bin/python", "/opt/conda/bin/python", "~/miniconda3/bin/python"),
)
