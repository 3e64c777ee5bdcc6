"""Targets on the command line: a path, or the words behind FOR in a sentence.

``acme/m`` and ``CONTAINER acme/m`` mean the same, so that a target can be copied from a policy.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Final

#: Word of the language → parts of the path behind it.
LEVELS: Final = {"TENANT": 1, "CONTAINER": 2, "OBJECT": 3}
_OTHERS: Final = ("ALL", "CLUSTER", "GROUP", "VOLUME")
_FORMS: Final = {1: "TENANT account", 2: "CONTAINER account/container", 3: "OBJECT account/container/object"}


def target_path(text: str) -> str:
    """Return the path of a target, without the word for its level; for ``type`` of argparse.

    :raises ArgumentTypeError: when the path does not fit that word
    """
    level, _, path = text.partition(" ")
    wanted = LEVELS.get(level.upper())
    if wanted is None or not path.strip():
        return text
    path = path.strip().strip('"')
    parts = path.split("/", 2)
    if len(parts) != wanted or not all(parts):
        raise ArgumentTypeError(f"`{text}` is no target, expected {_FORMS[wanted]}")
    return path


def sentence_target(text: str) -> str:
    """Return a target in the form behind FOR: a path of several parts gets the word for its level."""
    level = text.partition(" ")[0].upper()
    slashes = text.count("/")
    if level in LEVELS or level in _OTHERS or not slashes:
        return text
    return f"{'CONTAINER' if slashes == 1 else 'OBJECT'} {text}"
