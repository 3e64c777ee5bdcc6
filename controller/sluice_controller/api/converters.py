"""Path converters for names, targets and rates, in which any character may stand, line breaks included."""

from __future__ import annotations

from django.urls.converters import StringConverter


class NameConverter(StringConverter):
    """One name: no slash.  Other than for ``str``, the schema says so."""


class TargetConverter(StringConverter):
    """``account[/container[/object]]``; an object's name may hold slashes and line breaks."""

    regex = r"[\s\S]+"


class RateConverter(StringConverter):
    """A rate, whose unit may end in ``/s``."""

    regex = "[^/]+(?:/s(?:ec)?)?"
