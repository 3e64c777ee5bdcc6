"""Follows a list that grows at its end; a controller that is away for a moment does not end that."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from sluice_client.errors import ApiError, Unreachable
from sluice_client.resources.columns import Data

_SHORTEST: Final = 0.5
_LONGEST: Final = 10.0
#: An empty page that came sooner than this was not waited for: the controller had no place to wait.
_SOON: Final = 1.0


def follow_pages(
    fetch: Callable[[str], Data],
    name: str,
    since: str,
    say: Callable[[str], object],
    pause: Callable[[float], object] = time.sleep,
) -> Iterator[Data]:
    """The items of page after page, without end.

    :param fetch: given an id, returns the page behind it, which may wait for its first item
    :param name: field of the page with its items
    :param say: gets a line when the controller is away, and when it is back
    """
    seconds, trouble = _SHORTEST, ""
    while True:
        began = time.monotonic()
        try:
            page = fetch(since)
        except (ApiError, Unreachable) as error:
            if isinstance(error, ApiError) and error.status != 503:
                raise
            if not trouble:
                say(f"{error}; trying again")
            trouble = str(error)
            pause(seconds)
            seconds = min(seconds * 2, _LONGEST)
            continue
        if trouble:
            say("the controller answers again")
        seconds, trouble = _SHORTEST, ""
        yield from page[name]
        since = page["last"]
        if not page[name] and time.monotonic() - began < _SOON:
            pause(_SOON)
