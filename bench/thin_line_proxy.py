"""`thin_line_proxy.py FROM:PORT TO:PORT DELAY_S BYTES_PER_S COUNTS`: a long and narrow line.

All connections share one rate in each direction, as those of a person do. COUNTS is a file with the
bytes that went up and down and the turns: how often the laptop spoke after the box had.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

CHUNK_BYTES = 16_384


class Line:
    def __init__(self, delay_s: float, rate: float, counts: Path) -> None:
        self.delay_s, self.rate, self.counts = delay_s, rate, counts
        self.free_at = [0.0, 0.0]
        self.bytes = [0, 0]
        self.turns = 0

    async def carry(self, up: bool, chunk: bytes) -> float:
        """Wait until the line has taken the chunk; when it comes out at the other end."""
        loop, way = asyncio.get_running_loop(), 0 if up else 1
        free_at = max(self.free_at[way], loop.time()) + len(chunk) / self.rate
        self.free_at[way] = free_at
        self.bytes[way] += len(chunk)
        self.counts.write_text(f"{self.bytes[0]} {self.bytes[1]} {self.turns}")
        await asyncio.sleep(max(0.0, free_at - loop.time()))
        return free_at + self.delay_s


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
                line.turns += up
                said[0] = up
            await queue.put((await line.carry(up, chunk), chunk))
    except OSError:
        pass
    await queue.put((loop.time() + line.delay_s, b""))
    await asyncio.gather(arriving, return_exceptions=True)


async def main() -> None:
    (here, port), (there, there_port) = (word.rsplit(":", 1) for word in sys.argv[1:3])
    line = Line(float(sys.argv[3]), float(sys.argv[4]), Path(sys.argv[5]))

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        box = await asyncio.open_connection(there, int(there_port))
        said = [False]
        await asyncio.gather(
            pump(line, True, said, reader, box[1]), pump(line, False, said, box[0], writer)
        )

    server = await asyncio.start_server(meet, here, int(port))
    line.counts.write_text("0 0 0")
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
