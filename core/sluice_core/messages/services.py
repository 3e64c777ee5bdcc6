"""What services of third parties answered, which filters are enforced by calls to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sluice_core.describe import PROXY, Scalar
from sluice_core.messages.base import Message

#: States of a call: it waits for its turn, the service accepted it, or it failed and is tried again.
WAITING: Final = "waiting"
DONE: Final = "done"
FAILED: Final = "failed"


@dataclass(frozen=True, slots=True)
class ServiceState(Message):
    """The last call about one assignment of a filter that a service enforces.

    ``undo`` says that the call takes the assignment back; once that is done nothing is kept.  ``target``, ``params``
    and ``place`` are those of the call.  ``at`` is in unix seconds.
    """

    assignment: str
    policy: str
    keyword: str
    target: str
    state: str = WAITING
    reason: str = ""
    undo: bool = False
    attempts: int = 0
    at: float = 0.0
    params: Mapping[str, Scalar] = field(default_factory=dict)
    place: str = PROXY
