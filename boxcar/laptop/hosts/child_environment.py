"""What rsync and its ssh get of the person's environment: the way to the box, and no secret.

The variables that `secrets:` names are exported in the shell in which `launch` is typed, and a
copy of hours would carry them for all of that time. Not covered: a ProxyCommand that takes its
key from the environment; it has to read it from a file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from boxcar.shared.environment import clean_environment

# Agents and hardware keys, who asks for a passphrase, Kerberos, and the way out of a network.
_KEPT = (
    *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "TERM"),
    *("GPG_TTY", "GNUPGHOME", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_SK_PROVIDER"),
    *("SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "KRB5CCNAME", "KRB5_CONFIG"),
    # Which cluster kubectl means, and as whom its login plugins ask.
    *("KUBECONFIG", "KUBECACHEDIR", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"),
    *("CLOUDSDK_CONFIG", "USE_GKE_GCLOUD_AUTH_PLUGIN", "AZURE_CONFIG_DIR"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)
_KEPT_PREFIXES = ("XDG_",)


def child_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """For every program that moves files to or from a box."""
    kept = {
        name: value
        for name, value in environ.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
    return clean_environment(environ) | kept
