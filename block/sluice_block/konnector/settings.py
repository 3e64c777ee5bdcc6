"""The konnector's options, declared once."""

from __future__ import annotations

from typing import Final

from sluice_core.options import Option

SECTION: Final = "konnector"
OPTIONS: Final = (
    Option("run_dir", "/run/sluice/konnector", "folder of sockets and mounts, on a file system that a reboot empties"),
    Option("state_dir", "/var/lib/sluice/konnector", "folder of what is attached here; holds secrets of connections"),
    Option("cache_dir", "/var/cache/sluice/nbdkit", "folder of our filters for nbdkit, which are built here"),
    Option("log_level", "info", "debug, info, warning or error"),
)
