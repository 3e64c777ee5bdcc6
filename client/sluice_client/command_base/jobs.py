"""Waits for a job of the controller, and shows how far it is: one line on a terminal, else a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TextIO

from sluice_client.errors import ApiError, Unreachable
from sluice_client.resources.columns import Data, printable

#: Seconds after which a controller is asked again that was away.
PAUSE: Final = 1.0
#: What is behind the controller is away for a moment.
_BUSY: Final = 503


def wait_for_job(
    job: Data,
    fetch: Callable[[], Data],
    has_ended: Callable[[Data], bool],
    line: Callable[[Data], str],
    shown_on: TextIO,
    seconds: float = 10.0,
    at_once: bool = True,
) -> Data:
    """``job`` when it has ended; a controller that is away for a moment does not end the wait.

    :param fetch: the job as it is now, or in a moment
    :param line: how far it is
    :param seconds: between two lines where there is no terminal
    :param at_once: whether the first line does not wait for so long
    """
    is_terminal, shown = shown_on.isatty(), 0.0 if at_once else time.monotonic()
    while not has_ended(job):
        now = time.monotonic()
        if is_terminal or now - shown >= seconds:
            shown_on.write(f"\r\x1b[K{printable(line(job))}" if is_terminal else f"{printable(line(job))}\n")
            shown_on.flush()
            shown = now
        job = _fetch_or_previous(fetch, job)
    if is_terminal:
        shown_on.write(f"\r\x1b[K{printable(line(job))}\n")
    return job


def _fetch_or_previous(fetch: Callable[[], Data], job: Data) -> Data:
    try:
        return fetch()
    except Unreachable:
        pass
    except ApiError as error:
        if error.status != _BUSY:
            raise
    time.sleep(PAUSE)
    return job
