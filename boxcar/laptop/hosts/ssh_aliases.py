"""The hosts that ~/.ssh/config names, for a hint; OpenSSH alone decides what they mean."""

from __future__ import annotations

from pathlib import Path

# Hosts that nobody trains on.
_OTHERS = ("github", "gitlab", "bitbucket", "gitee", "ssh.dev.azure", "huggingface", "hf.co")
_MOST_BYTES = 1_000_000


def read_aliases(config: Path) -> list[str]:
    """Names without wildcards, each once, in their order; empty where there is no such file."""
    try:
        lines = config.read_bytes()[:_MOST_BYTES].decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    names: dict[str, None] = {}
    for line in lines:
        key, _, rest = line.strip().replace("=", " ", 1).partition(" ")
        if key.lower() == "host":
            names |= dict.fromkeys(name for name in rest.split() if _is_box(name))
    return list(names)


def _is_box(name: str) -> bool:
    is_pattern = any(char in name for char in '*?!"')
    return not is_pattern and not any(other in name.lower() for other in _OTHERS)
