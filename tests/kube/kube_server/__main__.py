from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from .server import serve

parser = argparse.ArgumentParser(prog="kube_server")
parser.add_argument("folder", type=Path)
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--version", default="1.37")
asked = parser.parse_args()
major, minor = asked.version.split(".")
asyncio.run(serve(asked.folder, asked.port, (int(major), int(minor))))
