"""Configuration files."""

from __future__ import annotations

from collections.abc import Mapping

Options = Mapping[str, str]


def section(name: str, options: Options) -> str:
    """One section of an ini file."""
    return "\n".join([f"[{name}]", *(f"{option} = {value}" for option, value in options.items()), ""])
