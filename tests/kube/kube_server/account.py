"""What Kubernetes gives each pod to ask the server with: an address, a token, a certificate.

The token is known to the server, and may read pods only where a test says so: a cluster where no
Role says otherwise refuses.
"""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

from .container import Mount

_WHERE = Path("/var/run").resolve() / "secrets/kubernetes.io/serviceaccount"
_CERTIFICATE = (
    *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
    *("-days", "2", "-subj", "/CN=tests", "-addext", "subjectAltName=IP:127.0.0.1"),
)


@dataclass
class Account:
    """Without openssl pods are given none, as where a person turned it off."""

    folder: Path
    port: int = 0
    may_read_pods: bool = False
    token: str = field(default_factory=lambda: token_hex(16))

    def certificate(self) -> ssl.SSLContext | None:
        if shutil.which("openssl") is None:
            return None
        self.folder.mkdir()
        key, own = self.folder.with_suffix(".key"), self.folder / "ca.crt"
        words = ("openssl", *_CERTIFICATE, "-keyout", str(key), "-out", str(own))
        subprocess.run(words, check=True, capture_output=True)
        (self.folder / "token").write_text(self.token)
        (self.folder / "namespace").write_text("default")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(own, key)
        return context

    @property
    def env(self) -> dict[str, str]:
        address = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": self.port}
        return {name: str(value) for name, value in address.items()} if self.port else {}

    @property
    def mounts(self) -> list[Mount]:
        return [Mount(self.folder, str(_WHERE), read_only=True)] if self.port else []

    def is_refused(self, authorization: str | None) -> bool:
        return authorization == f"Bearer {self.token}" and not self.may_read_pods
