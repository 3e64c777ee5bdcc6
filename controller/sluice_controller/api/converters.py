"""Parts of paths that are names, targets and rates, in which anything may stand, line breaks included."""

from __future__ import annotations


class NameConverter:
    """One name: no slash."""

    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        """Called by Django with the decoded part."""
        return value

    def to_url(self, value: str) -> str:
        """Called by Django to make a path."""
        return value


class TargetConverter(NameConverter):
    """``account[/container[/object]]``; an object's name may hold slashes and line breaks."""

    regex = r"[\s\S]+"


class RateConverter(NameConverter):
    """A rate, whose unit may end in ``/s``."""

    regex = "[^/]+(?:/s(?:ec)?)?"
