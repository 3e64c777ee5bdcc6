"""The columns of rewrites, and how far one is on one line."""

from __future__ import annotations

from typing import Any, Final

from sluice_client.resources.columns import MEGABYTE, Column, Data, fields, lines, rate_text
from sluice_client.resources.policies import Columns

field = Column.field
_WIDTH: Final = 30


def share_done(data: Data) -> float:
    """The part of the objects that was looked at, 0 to 1; of what was found so far."""
    if data["state"] == "done":
        return 1.0
    found = max(data["objects"], data["objects_done"])
    return data["objects_done"] / found if found else 0.0


def _percent(data: Data) -> str:
    return f"{share_done(data):.0%}" + ("" if data["listed"] else " of what was found so far")


def _rate(value: Any) -> str:
    return "" if value is None else rate_text(value)


def _example(row: Any) -> str:
    return f"{row['object']}: {row['reason']}"


def progress_line(data: Data, rate: float | None) -> str:
    """A bar, and what was done, on one line.

    :param rate: bytes per second that were looked at lately, None if unknown
    """
    share = share_done(data)
    words = [f"[{'#' * int(share * _WIDTH):{_WIDTH}}] {share:4.0%}"]
    words.append(f"{data['objects_done']} of {max(data['objects'], data['objects_done'])} objects")
    words.append(f"{data['rewritten']} rewritten, {data['bytes_rewritten'] / MEGABYTE:.1f} MB")
    if failed := sum(data["failed"].values()):
        words.append(f"{failed} failed")
    if rate is not None:
        words.append(rate_text(rate))
    if data["estimated_end"]:
        words.append(f"ends about {data['estimated_end']}")
    return ", ".join(words)


REWRITE_LIST: Final[Columns] = (
    field("ID", "id"),
    *fields("Target", "To", "State"),
    Column("Done", _percent),
    *fields("Rewritten", "Skipped", "Failed"),
    field("Estimated End", long=True),
    field("Created At", long=True),
    field("Created By", long=True),
)
REWRITE: Final[Columns] = (
    *fields("id", "target", "to", "state", "warning"),
    Column("done", _percent),
    *fields("accounts", "containers", "containers_done", "objects", "objects_done"),
    *fields("rewritten", "unchanged", "skipped", "failed"),
    *fields("bytes", "bytes_done", "bytes_rewritten", "working"),
    field("max_bw", human=_rate),
    *fields("max_objects_sec", "estimated_end", "ended_at", "created_at", "created_by"),
    field("examples", human=lines(_example)),
)
