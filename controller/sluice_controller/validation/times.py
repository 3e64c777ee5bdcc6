"""Times in answers and in queries."""

from __future__ import annotations

from datetime import UTC, datetime

from sluice_core.errors import CallerError

_EXAMPLE = "a time such as 2026-01-31T12:00:00Z"


def iso_time(seconds: float) -> str:
    """Unix time as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_since(text: str, otherwise: str = "") -> float:
    """The time that the parameter ``since`` names; 0 of an empty text.

    :param otherwise: what else may stand there, for the error
    :raises CallerError: when it is none
    """
    return read_time("since", text, otherwise) if text else 0.0


def read_time(name: str, text: str, otherwise: str = "") -> float:
    """Unix time of ISO 8601 (without an offset it is UTC) or of seconds, in the parameter called ``name``.

    :param otherwise: what else may stand there, for the error
    :raises CallerError: when it is neither
    """
    if text.isascii() and text.isdigit() and len(text) < 12:
        return float(text)
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise CallerError(f"`{name}` is `{text}`, expected {_EXAMPLE}{otherwise}") from None
