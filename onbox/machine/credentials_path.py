"""Where the credentials' file is: a variable says it, to the agent and to an attempt's wrapper."""

from __future__ import annotations

VARIABLE = "BOXCAR_CREDENTIALS"
