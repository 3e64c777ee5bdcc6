"""The rewriter's options, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from sluice_core.options import Option, OptionError, sample_section
from sluice_middleware.wsgi.internal_client import NODE_OPTIONS, REDIS_OPTIONS, SWIFT_SAMPLE, read_section

SECTION: Final = "rewriter"
OPTIONS: Final = (
    *REDIS_OPTIONS,
    Option("concurrency", 4, "objects that are rewritten at a time"),
    *NODE_OPTIONS,
)


def sample_file() -> str:
    """A whole configuration with the defaults."""
    return sample_section(SECTION, OPTIONS) + SWIFT_SAMPLE


def read_settings(*paths: str | Path) -> dict[str, Any]:
    """The options of ``[rewriter]`` in the files, whose ``[DEFAULT]`` is Swift's.

    :raises OptionError: when a file cannot be read or an option in it cannot be used
    """
    values = read_section(SECTION, OPTIONS, *paths)
    if values["concurrency"] < 1:
        raise OptionError(f"option `concurrency` is `{values['concurrency']}`, expected at least 1")
    return values
