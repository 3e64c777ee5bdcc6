"""What can go wrong while starting and stopping a cluster."""

from __future__ import annotations

from sluice_core.errors import SluiceError


class LaunchError(SluiceError):
    """The cluster cannot be brought up, or not as asked; the message says what to do."""
