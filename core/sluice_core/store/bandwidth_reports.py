"""How the bandwidth report in Redis is read: by the API for people, and by actor hosts for global controllers."""

from __future__ import annotations

from typing import Any, Final

from sluice_core.messages.bandwidth_report import BandwidthReport, IdleFlowReport
from sluice_core.store.keys import Keys
from sluice_core.store.operation import Operation, decoded

#: Seconds for which Redis keeps a report after it was put there.
RETENTION: Final = 10.0
#: Age in seconds from which on a report says nothing about now.
FRESH: Final = 5.0


def read_report(keys: Keys) -> Operation[tuple[BandwidthReport | None, float]]:
    """The report, and the seconds for which it is kept yet; negative when that is without an end."""

    def parse(replies: list[Any]) -> tuple[BandwidthReport | None, float]:
        raw, left = replies
        return decoded(BandwidthReport, keys.bandwidth, raw), left / 1000

    return Operation((("GET", keys.bandwidth), ("PTTL", keys.bandwidth)), parse)


def read_idle_flows(keys: Keys, digest: str) -> Operation[IdleFlowReport | None]:
    """The rows of idle flows that a report names."""
    key = keys.promises(digest)
    return Operation((("GET", key),), lambda replies: decoded(IdleFlowReport, key, replies[0]))
