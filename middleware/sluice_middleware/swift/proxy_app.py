"""Imports of :mod:`replica_choice` from Swift's proxy server."""

from __future__ import annotations

from swift.proxy.server import Application, parse_per_policy_config
