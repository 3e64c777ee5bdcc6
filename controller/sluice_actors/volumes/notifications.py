"""Cinder's notifications become events: volumes that were created, extended, retyped, deleted, attached, or failed.

Cinder publishes notifications with oslo.messaging's topic ``notifications`` to a topic exchange of its broker.  Each
host reads them from a queue of its own, beside other readers (Ceilometer); the host that owns :data:`NAME` logs
them.  Notifications that arrive while no host reads are not logged.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from sluice_actors.runtime.event_log import LogEvent
from sluice_actors.runtime.services import Ownership, Service, Spawn
from sluice_core.connections.consumer import Consumer
from sluice_core.errors import DecodeError
from sluice_core.messages.events import (
    VOLUME_ATTACHED,
    VOLUME_CREATED,
    VOLUME_DELETED,
    VOLUME_DETACHED,
    VOLUME_EXTENDED,
    VOLUME_FAILED,
    VOLUME_RETYPED,
)

log = logging.getLogger(__name__)

#: The name under which the logging host owns its work.
NAME: Final = "cinder/notifications"
#: Prefix of the source of an event, before the project, so that no project uses up the events of others.
SOURCE: Final = "cinder/"
BINDINGS: Final = ("notifications.info", "notifications.error")
#: Seconds after which the broker drops a notification for a slow host.
_TTL: Final = 60.0
_SIZED: Final = (VOLUME_CREATED, VOLUME_EXTENDED)
#: Type of a notification → kind of the event, and its text.
_EVENTS: Final[Mapping[str, tuple[str, str]]] = {
    "volume.create.end": (VOLUME_CREATED, "was created"),
    "volume.resize.end": (VOLUME_EXTENDED, "was extended"),
    "volume.retype": (VOLUME_RETYPED, "was retyped"),
    "volume.delete.end": (VOLUME_DELETED, "was deleted"),
    "volume.attach.end": (VOLUME_ATTACHED, "was attached"),
    "volume.detach.end": (VOLUME_DETACHED, "was detached"),
    "scheduler.create_volume": (VOLUME_FAILED, "was not created"),
    "scheduler.extend_volume": (VOLUME_FAILED, "was not extended"),
    "scheduler.retype": (VOLUME_FAILED, "was not retyped"),
}


class CinderNotifications(Service):
    """Reads the notifications in ``exchange``, at the broker ``url``.

    :param durable: whether Cinder declares its exchange durable (its ``amqp_durable_queues``, or quorum queues)
    """

    def __init__(self, url: str, exchange: str, durable: bool, ownership: Ownership, log_event: LogEvent) -> None:
        self._ownership = ownership
        self._log_event = log_event
        self.consumer = Consumer(url, self._receive, BINDINGS, exchange, ttl=_TTL, durable=durable)

    def start(self, spawn: Spawn) -> None:
        self.consumer.start()

    async def close(self) -> None:
        await self.consumer.close()

    def _receive(self, routing_key: str, body: bytes) -> None:
        if not self._ownership.owns(NAME):
            return
        try:
            event = read_notification(body)
        except DecodeError as error:
            log.warning("skipped a message of cinder: %s", error)
            return
        if event is not None:
            kind, text, more = event
            self._log_event(kind, text, SOURCE + more["fields"].get("project", ""), **more)


def read_notification(body: bytes) -> tuple[str, str, dict[str, Any]] | None:
    """Kind, text and further fields of the event in a notification; None for other types of notifications.

    :raises DecodeError: when it is not a notification of oslo.messaging, or has a volume without its id
    """
    try:
        document = json.loads(body)
        message = json.loads(document["oslo.message"]) if "oslo.message" in document else document
        event = _EVENTS.get(message["event_type"])
        if event is None:
            return None
        payload = message["payload"]
        return _describe(*event, str(payload["volume_id"]), payload)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DecodeError(f"not a notification: {error}", body) from error


def _describe(kind: str, what: str, volume: str, payload: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
    told = payload.get("volume_properties") or payload
    name = payload.get("display_name") or told.get("display_name") or ""
    called = f"volume `{volume}`" + (f" (`{name}`)" if name else "")
    fields = {
        "project": str(payload.get("tenant_id") or told.get("project_id") or ""),
        "host": str(payload.get("host") or ""),
        "size": payload.get("size", told.get("size")),
    }
    text = f"{called} {what}"
    if kind in _SIZED:
        text += f", {fields['size']} GiB"
    if kind == VOLUME_FAILED:
        text += f": {payload.get('reason') or 'cinder gives no reason'}"
    return kind, text, {"subject": volume, "fields": {name: value for name, value in fields.items() if value}}
