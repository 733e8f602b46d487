"""A mail server on 127.0.0.1 that speaks SMTP (RFC 5321), with AUTH, as far as smtplib asks.

Python's sockets alone: no package of the tests has one.
"""

from __future__ import annotations

import base64
import contextlib
import socketserver
import ssl
import threading
from dataclasses import dataclass, field


@dataclass
class MailServer(socketserver.ThreadingTCPServer):
    """`after_data` is what it says to a whole message; `context` offers STARTTLS."""

    after_data: str = "250 2.0.0 queued as 4711"
    rcpt: str = "250 2.1.5 ok"
    password: str = ""
    context: ssl.SSLContext | None = None
    mails: list[tuple[str, str, str]] = field(default_factory=list)  # from, to, content
    said: list[str] = field(default_factory=list)
    was_encrypted: list[bool] = field(default_factory=list)
    daemon_threads = True

    def __post_init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def end(self) -> None:
        self.shutdown()
        self.server_close()


class _Session(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self.sender = self.to = ""
        self.is_encrypted = False
        with contextlib.suppress(OSError):
            self._say("220 test ESMTP")
            while line := self._line():
                self.server.said.append(line)
                if not self._answer(line.upper().split(" ")[0], line):
                    return

    def _line(self) -> str:
        return self.rfile.readline().decode().rstrip("\r\n")

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())

    def _answer(self, verb: str, line: str) -> bool:
        if verb in ("EHLO", "HELO"):
            self._hello()
        elif verb == "STARTTLS":
            self._encrypt()
        elif verb == "AUTH":
            self._authenticate(line)
        elif verb == "MAIL":
            self.sender = line.partition("<")[2].partition(">")[0]
            self._say("250 ok")
        elif verb == "RCPT":
            self.to = line.partition("<")[2].partition(">")[0]
            self._say(self.server.rcpt)
        elif verb == "DATA":
            self._take()
        else:
            self._say("221 bye" if verb == "QUIT" else "250 ok")
        return verb != "QUIT"

    def _hello(self) -> None:
        offers = ["AUTH PLAIN LOGIN"] if self.server.password else []
        offers += ["STARTTLS"] if self.server.context and not self.is_encrypted else []
        lines = ["test", *offers]
        for at, text in enumerate(lines):
            self._say(f"250{' ' if at == len(lines) - 1 else '-'}{text}")

    def _encrypt(self) -> None:
        assert self.server.context
        self._say("220 go ahead")
        self.connection = self.server.context.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", 0)  # type: ignore[assignment]
        self.is_encrypted = True

    def _authenticate(self, line: str) -> None:
        given = base64.b64decode(line.split(" ")[2]).decode().split("\0")[-1]
        is_right = given == self.server.password
        self._say("235 welcome" if is_right else f"535 5.7.8 not accepted: {given}")

    def _take(self) -> None:
        self._say("354 go on")
        lines = []
        while (line := self._line()) != ".":
            lines.append(line)
        self.server.was_encrypted.append(self.is_encrypted)
        if self.server.after_data.startswith("250"):
            self.server.mails.append((self.sender, self.to, "\n".join(lines)))
        self._say(self.server.after_data)
