"""What a policy's actor did, newest first, in pages.

Actors keep the last firings only; a marker names one of them by its time, and by its number among those
of the same moment, so it stays a place in the list when newer ones come or it is itself forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sluice_controller.catalog.entries import Page
from sluice_core.errors import CallerError
from sluice_core.messages.policies import Firing

Position = tuple[int, int]


def page_firings(
    firings: Sequence[Firing], limit: int, marker: str = "", what: str = "", member: str = ""
) -> Page[Firing]:
    """Those behind ``marker``, of one kind or member if given."""
    before = parse_marker(marker)
    chosen = [
        (place, one)
        for place, one in _placed(firings)
        if (before is None or place < before) and what in ("", one.what) and member in ("", one.member)
    ]
    shown = chosen[:limit]
    more = f"{shown[-1][0][0]}-{shown[-1][0][1]}" if len(chosen) > limit else ""
    return Page([one for _, one in shown], more)


def _placed(firings: Sequence[Firing]) -> Iterator[tuple[Position, Firing]]:
    """Each with its place, newest first."""
    places: list[tuple[Position, Firing]] = []
    for one in firings:
        at = int(one.at * 1_000_000)
        number = sum(place[0] == at for place, _ in places)
        places.append(((at, number), one))
    return reversed(places)


def parse_marker(marker: str) -> Position | None:
    """The place that ``marker`` names; None when there is no marker.

    :raises CallerError: when it is not one of ours
    """
    if not marker:
        return None
    match = re.fullmatch(r"([0-9]{1,18})-([0-9]{1,6})", marker, re.ASCII)
    if match is None:
        raise CallerError(f"`marker` is `{marker}`, expected `next_marker` of the page before")
    return int(match[1]), int(match[2])
