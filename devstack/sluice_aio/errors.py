"""Errors while starting and stopping a cluster."""

from __future__ import annotations

from sluice_core.errors import SluiceError


class LaunchError(SluiceError):
    """The cluster cannot be started, or not as requested; the message says what to do."""
