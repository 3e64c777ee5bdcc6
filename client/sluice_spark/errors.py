"""What a data frame fails with."""

from __future__ import annotations


class SluiceReadError(Exception):
    """The options make no sense, or the store does not give what was asked for."""
