"""Epochs of a shared log: requests of clients that do not know of a later one are refused."""

from __future__ import annotations

from typing import Final

from sluice_objects.api import Context, Refused

_EPOCH: Final = "epoch"


class StaleEpoch(Refused):
    """A later epoch began: the client must read the view of the log again."""

    def __init__(self, given: int, least: int) -> None:
        super().__init__(f"epoch `{given}` is stale, expected {least} or later", 409)


def epoch(context: Context) -> int:
    """The epoch of the object, 0 at first."""
    return int(context.attributes.get(_EPOCH, "0"))


def check_epoch(context: Context, given: int) -> None:
    """
    :raises StaleEpoch: when a later one began
    """
    if given < epoch(context):
        raise StaleEpoch(given, epoch(context))


def begin_epoch(context: Context, given: int) -> None:
    """
    :raises StaleEpoch: when the same or a later one began: of two clients that begin one, the second is refused
    """
    if given <= epoch(context):
        raise StaleEpoch(given, epoch(context) + 1)
    context.attributes[_EPOCH] = str(given)
