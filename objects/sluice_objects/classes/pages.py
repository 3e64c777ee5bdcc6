"""Answers with many items: a page, and where the next one begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from sluice_objects.api import LARGEST_ANSWER, Value

#: Items of a page at most, and by default.
MOST: Final = 1000
#: Bytes of an item beside key and value, and of the page beside its items.
_MARGIN: Final = 64


def page(items: Iterable[tuple[bytes, bytes]], limit: int, row: Callable[[str, bytes], Value]) -> Value:
    """``{"items": rows, "next": key}``; the next key is None after the last page.

    A page ends before ``limit`` items when more would not fit into an answer.

    :param items: with keys that are text
    :param row: what the page says of a key and its value
    """
    rows: list[Value] = []
    size = _MARGIN
    for key, value in items:
        size += len(key) + len(value) + _MARGIN
        if len(rows) == limit or size > LARGEST_ANSWER:
            return {"items": rows, "next": key.decode()}
        rows.append(row(key.decode(), value))
    return {"items": rows, "next": None}
