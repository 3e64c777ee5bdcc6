"""Options of Swift's proxy applications that no set-up of a cluster has: those of proxies and of Sluice's daemons."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_SECTION: Final = "[app:proxy-server]\n"


def set_proxy_option(conf: Path, name: str, value: str) -> None:
    """Write an option into the configuration ``conf``, for the next process that starts with it."""
    text = conf.read_text(encoding="utf-8")
    assert _SECTION in text, f"`{conf}` describes no proxy application"
    conf.write_text(text.replace(_SECTION, f"{_SECTION}{name} = {value}\n"), encoding="utf-8")
