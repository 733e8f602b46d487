"""`thin_line_proxy.py COUNTS DELAY_S BYTES_PER_S PORT=ADDRESS:PORT ...`: a long and narrow line.

All connections share one rate in each direction, as those of a person do, whichever box they lead
to. COUNTS is a file with the bytes that went up and down and the turns: how often the laptop spoke
after the box had, and had nothing under way. While it sends, a box acknowledges what has come, and
nobody waits for that. SIGUSR1 cuts every connection; SIGUSR2 begins and ends a silence, in which
nothing moves and nobody is told.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

CHUNK_BYTES = 16_384


class Line:
    def __init__(self, delay_s: float, rate: float, counts: Path) -> None:
        self.delay_s, self.rate, self.counts = delay_s, rate, counts
        self.free_at = [0.0, 0.0]
        self.bytes = [0, 0]
        self.turns = 0
        self.ends: set[asyncio.StreamWriter] = set()
        self.is_open = asyncio.Event()
        self.is_open.set()

    async def carry(self, up: bool, chunk: bytes) -> float:
        """Wait until the line has taken the chunk; when it comes out at the other end."""
        await self.is_open.wait()
        loop, way = asyncio.get_running_loop(), 0 if up else 1
        free_at = max(self.free_at[way], loop.time()) + len(chunk) / self.rate
        self.free_at[way] = free_at
        self.bytes[way] += len(chunk)
        self.counts.write_text(f"{self.bytes[0]} {self.bytes[1]} {self.turns}")
        await asyncio.sleep(max(0.0, free_at - loop.time()))
        return free_at + self.delay_s

    def cut(self) -> None:
        for end in self.ends:
            end.transport.abort()

    def fall_silent(self) -> None:
        if self.is_open.is_set():
            self.is_open.clear()
        else:
            self.is_open.set()


async def pump(
    line: Line,
    up: bool,
    said: list[bool],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def arrive() -> None:
        while True:
            at, chunk = await queue.get()
            await asyncio.sleep(max(0.0, at - loop.time()))
            if not chunk:
                writer.close()
                return
            writer.write(chunk)
            await writer.drain()

    arriving = asyncio.create_task(arrive())
    try:
        while chunk := await reader.read(CHUNK_BYTES):
            if said[0] is not up:
                line.turns += up and loop.time() > line.free_at[0] + line.delay_s
                said[0] = up
            await queue.put((await line.carry(up, chunk), chunk))
    except OSError:
        pass
    await queue.put((loop.time() + line.delay_s, b""))
    await asyncio.gather(arriving, return_exceptions=True)


async def serve(line: Line, port: str, address: str) -> None:
    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await line.is_open.wait()
        box = await asyncio.open_connection(*address.rsplit(":", 1))
        said, ends = [False], {writer, box[1]}
        line.ends |= ends
        await asyncio.gather(
            pump(line, True, said, reader, box[1]), pump(line, False, said, box[0], writer)
        )
        line.ends -= ends

    await asyncio.start_server(meet, "127.0.0.1", int(port))


async def main() -> None:
    counts = Path(sys.argv[1])
    line = Line(float(sys.argv[2]), float(sys.argv[3]), counts)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, line.cut)
    loop.add_signal_handler(signal.SIGUSR2, line.fall_silent)
    for way in sys.argv[4:]:
        await serve(line, *way.split("="))
    counts.write_text("0 0 0")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
