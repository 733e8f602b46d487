"""What tests of several verbs have."""

from __future__ import annotations

from renter import renter, ssh_home

__all__ = ["renter", "ssh_home"]
