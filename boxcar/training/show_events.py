"""Looks for event files below a folder, and shows them with the TensorBoard of its own interpreter.

It is sent as text to the training's Python, there or here, and holds nothing of Boxcar: any Python
of today runs it. Its first line is what it found, as JSON; then comes what TensorBoard says. It
ends TensorBoard when its stdin ends, so however the other side dies, nothing stays behind.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading

ENOUGH = 10000  # event files; more of them need not be counted


def events_below(folder: str) -> int:
    count = 0
    for _, _, files in os.walk(folder, followlinks=True):
        count += sum(".tfevents." in name for name in files)
        if count >= ENOUGH:
            break
    return count


def main(folder: str) -> int:
    events = events_below(folder)
    has_tensorboard = importlib.util.find_spec("tensorboard") is not None
    found = {"events": events, "tensorboard": has_tensorboard, "python": sys.executable}
    print(json.dumps(found), flush=True)
    if not events or not has_tensorboard:
        return 0
    words = ["--logdir", folder, "--host", "127.0.0.1", "--port", "0"]
    child = subprocess.Popen(
        [sys.executable, "-m", "tensorboard.main", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )

    def end() -> None:
        while os.read(0, 4096):
            pass
        child.terminate()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()

    threading.Thread(target=end, daemon=True).start()
    for line in child.stdout or ():
        sys.stdout.write(line.decode("utf-8", "replace"))
        sys.stdout.flush()
    return child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
