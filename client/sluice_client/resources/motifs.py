"""The columns of objects with motifs, templates, expansions of many objects, and spaces."""

from __future__ import annotations

from typing import Any, Final

from sluice_client.resources.columns import MEGABYTE, Column, Data, fields, lines, seconds_text, to_text
from sluice_client.resources.policies import Columns

field = Column.field
_WIDTH: Final = 30


def size_text(value: Any) -> str:
    """Return bytes with their unit, to the kilobyte for large values."""
    return f"{value} B" if value < 1000 else f"{round(value / MEGABYTE, 3):.15g} MB"


def _percent(value: Any) -> str:
    return "" if value is None else f"{value:.1%}"


def _motif(row: Any) -> str:
    return f"{row['template']} {to_text(row['params'])}".rstrip()


def _space(value: Any) -> str:
    return "" if not value else f"{value['path']}, {size_text(value['used'])} of {size_text(value['target'])}"


def _parameters(value: Any) -> str:
    return ", ".join(one["name"] + ("" if one.get("required") else "?") for one in value)


def _part(row: Any) -> str:
    return f"{row['path']}: {size_text(row['used'])} of {size_text(row['target'])}"


def _example(row: Any) -> str:
    return f"{row['item']}: {row['reason']}"


def operation_line(data: Data) -> str:
    """Return a bar, and the finished work, on one line."""
    done = data["expanded"] + data["failed"]
    share = done / (done + data["remaining"]) if done + data["remaining"] else 1.0
    words = [f"[{'#' * int(share * _WIDTH):{_WIDTH}}] {share:4.0%}"]
    words.append(f"{data['expanded']} of {done + data['remaining']} objects expanded, {size_text(data['bytes'])}")
    if data["failed"]:
        words.append(f"{data['failed']} failed")
    if data["state"] == "waiting":
        words.append("waiting for a daemon")
    return ", ".join(words)


OBJECT_LIST: Final[Columns] = (
    field("Object", "item"),
    field("Size", human=size_text),
    *fields("Contracted", "Opens"),
)
OBJECT: Final[Columns] = (
    field("object", "item"),
    field("size", human=size_text),
    field("contracted"),
    field("motifs", human=lines(_motif)),
    field("sources", human=lines(str)),
    field("opens"),
    field("expansion_seconds", human=seconds_text),
)
WHY: Final[Columns] = (
    *OBJECT,
    field("contractible"),
    field("reasons", human=lines(str)),
    field("space", human=_space),
)
TEMPLATE_LIST: Final[Columns] = (
    field("Template", "keyword"),
    field("Parameters", human=_parameters),
    *fields("Relation", "Exact", "Help"),
)
OPERATION: Final[Columns] = (
    *fields("id", "account", "container", "state", "expanded", "failed", "remaining"),
    field("bytes", human=size_text),
    *fields("created_at", "started_at", "ended_at", "by", "daemon"),
    field("examples", human=lines(_example)),
)
SPACE_LIST: Final[Columns] = (
    field("Space", "name"),
    field("Target", human=size_text),
    field("Used", human=size_text),
    field("Contracted", human=size_text),
    field("Hit Rate", human=_percent),
    *fields("Expansions", "State"),
    field("Seconds Lost", long=True),
    field("Policy", long=True),
    field("Reason", long=True),
    field("Set By", long=True),
)
SPACE: Final[Columns] = (
    *fields("name", "level"),
    field("target", human=size_text),
    field("used", human=size_text),
    field("contracted", human=size_text),
    *fields("objects", "contracted_objects", "state", "reason", "policy"),
    field("min_age", human=seconds_text),
    field("verify"),
    field("hit_rate", human=_percent),
    *fields("hits", "misses", "expansions", "seconds_lost", "expansions_per_second", "expansion_time"),
    field("parts", human=lines(_part)),
    *fields("set_by", "owner", "at"),
)
