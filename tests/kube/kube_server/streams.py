"""`kubectl exec` by v5.channel.k8s.io, and `kubectl logs`."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

from aiohttp import WSMsgType, web

from .api import Asked
from .container import PATH
from .kubelet import ENDED, Kubelets, Running
from .store import ApiError, Object, Store

PROTOCOL = "v5.channel.k8s.io"
STDIN, STDOUT, STDERR, ERROR, _RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
_LOOK_EVERY_S = 0.05


@dataclass(frozen=True)
class Cut:
    """One exec whose command has the words `of` ends as if all were well, after so many bytes of
    what it says, or of what it is sent.
    """

    bytes: int
    of: str = ""
    is_of_stdin: bool = False


@dataclass
class Streams:
    store: Store
    kubelets: Kubelets
    cut: Cut | None = None

    def _running(self, asked: Asked) -> tuple[Running, str]:
        """The pod as its node knows it, and which container is meant."""
        pod = self.store.get("pods", asked.namespace, asked.name)
        node = pod["spec"].get("nodeName")
        if not node:
            said = f"pod {asked.name} does not have a host assigned"
            raise ApiError(400, "BadRequest", said)
        if node in self.kubelets.lost:
            said = "error dialing backend: dial tcp 10.0.0.1:10250: connect: no route to host"
            raise ApiError(500, "InternalError", said)
        one = self.kubelets.running.get(pod["metadata"]["uid"])
        name = asked.query("container") or pod["spec"]["containers"][0]["name"]
        if one is None or name not in one.containers:
            said = (
                f'container "{name}" in pod "{asked.name}" is waiting to start: ContainerCreating'
            )
            raise ApiError(400, "BadRequest", said)
        return one, name

    # -- logs

    async def logs(self, asked: Asked) -> web.StreamResponse:
        one, name = self._running(asked)
        files = one.logs[name]
        if asked.query("previous") == "true":
            if len(files) < 2:
                said = f'previous terminated container "{name}" in pod "{asked.name}" not found'
                raise ApiError(400, "BadRequest", said)
            return web.Response(body=_tail(files[-2], asked.query("tailLines")))
        if asked.query("follow") != "true":
            return web.Response(body=_tail(files[-1], asked.query("tailLines")))
        stream = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await stream.prepare(asked.request)
        await stream.write(_tail(files[-1], asked.query("tailLines")))
        at = files[-1].stat().st_size
        with contextlib.suppress(ConnectionResetError):
            while True:
                ended = one.pod["status"]["phase"] in ENDED
                with files[-1].open("rb") as log:
                    log.seek(at)
                    new = log.read()
                at += len(new)
                await stream.write(new)
                if ended:
                    break
                await asyncio.sleep(_LOOK_EVERY_S)
        return stream

    # -- exec

    async def exec(self, asked: Asked) -> web.StreamResponse:
        one, name = self._running(asked)
        container = one.containers[name]
        if container.pid is None:
            raise ApiError(500, "InternalError", f'container not found ("{name}")')
        channel = web.WebSocketResponse(protocols=(PROTOCOL,), max_msg_size=0, compress=False)
        if PROTOCOL not in asked.request.headers.get("Sec-WebSocket-Protocol", ""):
            said = f"unable to upgrade: this server speaks only {PROTOCOL}"
            raise ApiError(400, "BadRequest", said)
        await channel.prepare(asked.request)
        has_input = asked.query("stdin") == "true"
        pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *container.inside(asked.request.query.getall("command")),
            env={"PATH": PATH, "HOME": "/root", "HOSTNAME": container.hostname, **container.env},
            stdin=pipe if has_input else null,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
            cwd="/",
        )
        code = await _talk(channel, process, self._cut(asked))
        with contextlib.suppress(ConnectionError):
            await channel.send_bytes(bytes([ERROR]) + json.dumps(_status(code)).encode())
            await channel.close()
        return channel

    def _cut(self, asked: Asked) -> Cut | None:
        """Once."""
        if self.cut is None or self.cut.of not in " ".join(asked.request.query.getall("command")):
            return None
        cut, self.cut = self.cut, None
        return cut


async def _talk(
    channel: web.WebSocketResponse, process: asyncio.subprocess.Process, cut: Cut | None
) -> int:
    """Hand on what both sides say until it ends; its exit code."""
    assert process.stdout is not None and process.stderr is not None
    taken, said = (cut.bytes if cut and cut.is_of_stdin == way else None for way in (True, False))
    feed = asyncio.ensure_future(_feed(channel, process, taken))
    out = asyncio.ensure_future(_send(channel, STDOUT, process.stdout, said))
    err = asyncio.ensure_future(_send(channel, STDERR, process.stderr, None))
    try:
        if cut is not None:
            await (feed if cut.is_of_stdin else out)
            process.kill()
            return 0
        await asyncio.gather(out, err)
        code = await process.wait()
        return 128 - code if code < 0 else code
    finally:
        for one in (feed, out, err):
            one.cancel()


async def _send(
    channel: web.WebSocketResponse, number: int, stream: asyncio.StreamReader, cut: int | None
) -> None:
    left = cut
    while block := await stream.read(32768):
        if left is not None:
            block, left = block[:left], left - len(block)
        with contextlib.suppress(ConnectionError):
            await channel.send_bytes(bytes([number]) + block)
        if left is not None and left <= 0:
            return


async def _feed(
    channel: web.WebSocketResponse, process: asyncio.subprocess.Process, cut: int | None
) -> None:
    """What the person's side sends goes to its stdin, until that side closes it."""
    left = cut
    with contextlib.suppress(ConnectionError):
        async for message in channel:
            if message.type != WSMsgType.BINARY or process.stdin is None:
                continue
            if message.data[0] == STDIN:
                process.stdin.write(message.data[1:][:left])
                await process.stdin.drain()
                left = left and max(0, left - len(message.data) + 1)
                if left == 0:
                    return
            elif message.data[0] == CLOSE and message.data[1] == STDIN:
                process.stdin.close()
    if process.stdin is not None:
        process.stdin.close()


def _status(code: int) -> Object:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def _tail(file: Path, lines: str) -> bytes:
    text = file.read_bytes()
    return b"".join(text.splitlines(keepends=True)[-int(lines) :]) if lines else text
