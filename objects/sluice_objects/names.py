"""Names of classes, methods and arguments, and errors about unknown ones."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

#: Names of classes and methods.
NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
#: Characters of an unknown name that are compared and shown.
LONGEST: Final = 63


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The text of an error about a name: with the near miss, or the names that are expected."""
    names, shown = list(known), name[:LONGEST]
    near = difflib.get_close_matches(shown, names, 1)
    expected = " or ".join(f"`{each}`" for each in names) or "none"
    return f"unknown {what} `{shown}`, " + (f"did you mean `{near[0]}`" if near else f"expected {expected}")
