"""The door to Swift's proxy server, for what takes its place at the end of the pipeline."""

from __future__ import annotations

from swift.proxy.server import Application, parse_per_policy_config
