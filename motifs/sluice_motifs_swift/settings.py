"""The motif daemon's options, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from sluice_core.options import Option, OptionError, sample_section
from sluice_middleware.wsgi.internal_client import NODE_OPTIONS, REDIS_OPTIONS, SWIFT_SAMPLE, read_section
from sluice_middleware.wsgi.worker_context import OPTIONS as WORKER_OPTIONS
from sluice_motifs.contraction.copies import GRACE
from sluice_motifs.space.keeper import SHARE
from sluice_motifs.templates import registry

SECTION: Final = "motifs"
OPTIONS: Final = (
    *REDIS_OPTIONS,
    Option("socket", "/run/sluice/motifs.sock", "unix socket for the node's proxies, their `motif_socket`"),
    Option("expansions", 16, "objects that are expanded at a time, without those that other expansions wait for"),
    Option("change_stream", True, "whether derived objects are contracted soon after their sources have changed"),
    Option("copy_sweep", 600.0, "seconds between two searches for hidden copies that no object needs"),
    Option(
        "copy_grace",
        GRACE,
        "seconds for which such a copy stays, the same for all daemons; more than four times as long as a contraction "
        "lasts, and far longer than clocks differ",
    ),
    Option(
        "reexpansion_share",
        SHARE,
        "part of all seconds that a space may take to make again what it contracted minutes before; "
        "a space whose target would need more stays larger",
    ),
    *(option for option in WORKER_OPTIONS if option.name == "agent_socket"),
    Option("cache_dir", "", "folder in which the node's proxies cache objects, their option of this name"),
    Option("node", "", "name of this node, as its agent's; empty means its host name"),
    *registry.OPTIONS,
    *NODE_OPTIONS,
)


def sample_file() -> str:
    """A whole configuration with the defaults."""
    return sample_section(SECTION, OPTIONS) + SWIFT_SAMPLE


def read_settings(*paths: str | Path) -> dict[str, Any]:
    """The options of ``[motifs]`` in the files, whose ``[DEFAULT]`` is Swift's.

    :raises OptionError: when a file cannot be read or an option in it cannot be used
    """
    values = read_section(SECTION, OPTIONS, *paths)
    if values["expansions"] < 1:
        raise OptionError(f"option `expansions` is `{values['expansions']}`, expected at least 1")
    for name in ("copy_sweep", "copy_grace", "reexpansion_share"):
        if values[name] <= 0:
            raise OptionError(f"option `{name}` is `{values[name]}`, expected more than 0")
    return values
