"""The context of one call: a view of an :class:`ObjectState` that collects the changes of a method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sluice_objects.api import LARGEST_STATE, Content, Refused, StateTooLarge
from sluice_objects.state.content import AttributesOverlay, ContentOverlay, StreamOverlay
from sluice_objects.state.items import Gate, ItemsOverlay
from sluice_objects.state.records import ContentState, ObjectState


class Result(NamedTuple):
    """What a call made of a state; content and snapshots are the state's own where they did not change."""

    content: ContentState
    snapshots: Mapping[str, ContentState]
    changed: bool


class CallContext:
    """:class:`~sluice_objects.api.Context` of one call.

    :param writes: False for a method that does not write; a change raises :class:`Refused` with status 409 then
    :param time: seconds since 1970, not before the clock of the state
    :param home_since: the time at which the present home took the object over
    """

    def __init__(
        self, state: ObjectState, writes: bool, time: float, home_since: float, caller: str = "", request_id: str = ""
    ) -> None:
        gate = _pass if writes else _refuse
        self._state = state
        self._content = ContentOverlay(state.content, gate)
        self.snapshots = SnapshotsOverlay(self._content, state.snapshots, gate)
        self.time = time
        self.caller = caller
        self.request_id = request_id
        self._home_since = home_since

    @property
    def stream(self) -> StreamOverlay:
        return self._content.stream

    @property
    def items(self) -> ItemsOverlay:
        return self._content.items

    @property
    def attributes(self) -> AttributesOverlay:
        return self._content.attributes

    @property
    def version(self) -> int:
        return self._state.version

    def remaining(self, since: float, timeout: float) -> float:
        return max(0.0, max(since, self._home_since) + timeout - self.time)

    def result(self) -> Result:
        """The content and snapshots that the call leaves."""
        before, content, snapshots = self._state, self._content.freeze(), self.snapshots.freeze()
        if content is not before.content and self.snapshots.rolled_back and content == before.content:
            content = before.content
        changed = content is not before.content or snapshots is not before.snapshots
        return Result(content, snapshots, changed)


class SnapshotsOverlay:
    """:class:`~sluice_objects.api.Snapshots` of one call.

    :ivar rolled_back: whether the content was made that of a snapshot
    """

    def __init__(self, content: ContentOverlay, snapshots: Mapping[str, ContentState], gate: Gate) -> None:
        self._content = content
        self._given = snapshots
        self._snapshots = dict(snapshots)
        self._gate = gate
        self.rolled_back = False

    def freeze(self) -> Mapping[str, ContentState]:
        """The snapshots now; the given ones when they did not change."""
        return self._given if self._snapshots == self._given else self._snapshots.copy()

    def create(self, name: str) -> None:
        self._gate()
        if type(name) is not str or not name:
            raise TypeError(f"the name of a snapshot is `{name!r:.60}`, expected text")
        name.encode()  # a text that is not Unicode cannot be stored
        if name in self._snapshots:
            raise Refused(f"there is a snapshot `{name}`", 409)
        content = self._content.freeze()
        # a method that makes many of them must not take the memory of the home before its state is encoded
        size = sum(len(each.stream) + 2 * len(each.items) for each in (content, *self._snapshots.values()))
        if size > LARGEST_STATE:
            raise StateTooLarge(size)
        self._snapshots[name] = content

    def names(self) -> list[str]:
        return sorted(self._snapshots)

    def read(self, name: str) -> Content:
        return ContentOverlay(self._find(name), _refuse_type)

    def roll_back(self, name: str) -> None:
        self._gate()
        self._content.reset(self._find(name))
        self.rolled_back = True

    def remove(self, name: str) -> bool:
        self._gate()
        return self._snapshots.pop(name, None) is not None

    def _find(self, name: str) -> ContentState:
        try:
            return self._snapshots[name]
        except KeyError:
            raise Refused(f"there is no snapshot `{name}`, expected one of {self.names()}", 404) from None


def _pass() -> None:
    """The content may change."""


def _refuse() -> None:
    raise Refused("a method that does not write changes the object, expected `@method(writes=True)`", 409)


def _refuse_type() -> None:
    raise TypeError("a snapshot cannot change")
