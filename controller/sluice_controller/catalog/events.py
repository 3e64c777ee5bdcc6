"""The log of events: reads it, waits for new events, and logs the API's own."""

from __future__ import annotations

import logging
import re
import time
from dataclasses import dataclass
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.validation.parameters import read_since
from sluice_core.errors import CallerError, PeerError
from sluice_core.messages.events import INFO, SEVERITIES, Event
from sluice_core.store.change_stream import LONGEST_BLOCK
from sluice_core.store.events import FIRST, id_before

log = logging.getLogger(__name__)

#: The source of the API's own events.
SOURCE: Final = "api"
_STEP: Final = 500
_ID: Final = re.compile(r"[0-9]{13,16}-[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class EventPage:
    """Some events, oldest first; ``last`` is the id after which the next ones are, whether they fit or not."""

    events: tuple[Event, ...]
    last: str
    next_marker: str


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Selects events by severity, node and policy.

    :param policies: only events about one of these policies; None for all
    """

    severity: str = INFO
    node: str = ""
    policy: str = ""
    policies: frozenset[str] | None = None

    def matches(self, event: Event) -> bool:
        """Whether an event is selected; an unknown severity counts as the highest."""
        if event.severity in SEVERITIES[: SEVERITIES.index(self.severity)]:
            return False
        if self.node not in ("", event.node) or self.policy not in ("", event.policy):
            return False
        return self.policies is None or event.policy in self.policies


def read_position(since: str) -> str:
    """The id after which a list begins.

    :param since: id of an event, or a time; empty for all kept events
    :raises CallerError: when it is neither
    """
    if since == FIRST or _ID.fullmatch(since):
        return since
    return id_before(read_since(since, " or the `id` of an event"))


def read_marker(marker: str) -> str:
    """The id after which the next page begins.

    :raises CallerError: when it is not an id
    """
    if _ID.fullmatch(marker) is None:
        raise CallerError(f"`marker` is `{marker}`, expected `next_marker` of the page before")
    return marker


def policies_of_accounts(backend: Backend, accounts: frozenset[str]) -> frozenset[str]:
    """The policies about these accounts and the objects in them."""
    policies = backend.policy_cache.contents().policies
    return frozenset(name for name, one in policies.items() if one.existing.account in accounts)


def list_events(backend: Backend, wanted: EventFilter, after: str, limit: int, seconds: float = 0.0) -> EventPage:
    """Events after the id ``after``, oldest first.

    :param seconds: the time to wait for an event, if there is none and a slot to wait is free
    """
    page = _read_page(backend, wanted, after, limit)
    if page.events or seconds <= 0 or not backend.waiters.acquire(blocking=False):
        return page
    deadline = time.monotonic() + seconds
    try:
        while not page.events and (rest := deadline - time.monotonic()) > 0:
            block = max(1, min(int(rest * 1000), LONGEST_BLOCK))
            if backend.store.events_after(page.last, 1, block).full:
                page = _read_page(backend, wanted, page.last, limit)
        return page
    finally:
        backend.waiters.release()


def _read_page(backend: Backend, wanted: EventFilter, after: str, limit: int) -> EventPage:
    events: list[Event] = []
    while True:
        batch = backend.store.events_after(after, _STEP)
        for event in batch.events:
            if not wanted.matches(event):
                continue
            if len(events) == limit:
                return EventPage(tuple(events), events[-1].id, events[-1].id)
            events.append(event)
        after = batch.last
        if not batch.full:
            return EventPage(tuple(events), after, "")


def add_event(backend: Backend, kind: str, text: str, **more: Any) -> None:
    """Log an event of the API; if Redis is unreachable, the event is lost and logged as text.

    :param more: further fields of :class:`~sluice_core.messages.events.Event`
    """
    try:
        backend.store.append_events([Event.make(backend.now(), kind, text, SOURCE, **more)])
    except PeerError as error:
        log.warning("event `%s` is lost: %s: %s", kind, text, error)
