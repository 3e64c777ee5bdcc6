"""What a class of typed objects is written against: :class:`ObjectClass`, :func:`method` and :class:`Context`.

A class is code beside the data of an object::

    class Counter(ObjectClass):
        '''A number.'''

        name = "counter"

        @method(writes=True)
        def add(self, context: Context, argument: Value) -> Value:
            '''Add a number, 1 by default, and return the sum.'''
            total = int(context.attributes.get("total", "0")) + (argument or 1)
            context.attributes["total"] = str(total)
            return total

The home of an object calls its methods one after the other.  A call is all or nothing: when the method returns, its
changes are stored on a majority of the object's devices before the caller gets the answer; when it raises, nothing is
stored, and the caller gets the message of a :class:`Refused`, or else the name of the exception as an error of the
class.  A method sees its own changes.  It depends on nothing but the context and the argument, and does not call out.

Uploaded code imports this module by this name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, ClassVar, Final, Protocol, TypeVar

from sluice_core.errors import CallerError

#: What JSON and MessagePack can say: None, bool, int, float, str, bytes (not in JSON), lists and dicts with text keys.
Value = Any
F = TypeVar("F", bound=Callable[..., Any])

#: Bytes of an encoded state, and of an encoded answer, at most.
LARGEST_STATE: Final = 8 << 20
LARGEST_ANSWER: Final = 1 << 20
_METHOD: Final = "_sluice_writes"


class Refused(CallerError):
    """A method refuses its argument, or the state of the object does not permit the call.

    :param status: 400 (the argument), 404 (a key that is not there), 409 (the state), 410 (what was there is gone), 412
        (a condition), 413 (too large), or another one from 400 to 499
    """

    def __init__(self, message: str, status: int = 400) -> None:
        if not 400 <= status <= 499:
            raise ValueError(f"status `{status}` of a refusal, expected 400 to 499")
        super().__init__(message)
        self.status = status


class StateTooLarge(Refused):
    """The state of the object would have more than :data:`LARGEST_STATE` bytes."""

    def __init__(self, size: int) -> None:
        super().__init__(
            f"the state would have {size} bytes, expected at most {LARGEST_STATE}: keep large values in other objects",
            413,
        )


class Stream(Protocol):
    """The byte stream of an object, which GET returns."""

    def __len__(self) -> int: ...

    def read(self, offset: int = 0, size: int | None = None) -> bytes:
        """Up to ``size`` bytes from ``offset``; without a size all that follow."""

    def write(self, data: bytes, offset: int | None = None) -> None:
        """Write ``data`` at ``offset``, by default at the end; a gap before it is filled with zeros."""

    def truncate(self, size: int) -> None:
        """Make the stream ``size`` bytes long; a longer one is filled with zeros."""


class Items(Protocol):
    """The sorted key-value part of an object."""

    def __len__(self) -> int: ...

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""

    def set(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""

    def remove(self, key: bytes) -> bool:
        """Remove a key; False when it is not there."""

    def range(
        self, start: bytes = b"", end: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values from ``start`` up to, and without, ``end``, in the order of the keys.

        The class may change items while it iterates: a removed key is left out, a new one may be left out.
        """

    def prefix(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys that begin with ``prefix``, and their values, in the order of the keys."""


class Snapshots(Protocol):
    """Named copies of byte stream, items and attributes."""

    def create(self, name: str) -> None:
        """
        :raises Refused: when there is one of this name
        """

    def names(self) -> list[str]:
        """The names, sorted."""

    def read(self, name: str) -> Content:
        """The content at the time of the snapshot; writing to it raises TypeError.

        :raises Refused: when there is none of this name
        """

    def roll_back(self, name: str) -> None:
        """Make the content that of the snapshot, which stays.

        :raises Refused: when there is none of this name
        """

    def remove(self, name: str) -> bool:
        """Remove a snapshot; False when there is none of this name."""


class Content(Protocol):
    """What a class keeps in an object."""

    @property
    def stream(self) -> Stream: ...

    @property
    def items(self) -> Items: ...

    @property
    def attributes(self) -> MutableMapping[str, str]: ...


class Context(Content, Protocol):
    """One call."""

    @property
    def snapshots(self) -> Snapshots: ...

    @property
    def version(self) -> int:
        """The version of the state before the call: 0 when the object is created by it.

        A call that changes something raises it by one, so ``version + 1`` names the change that this call makes.
        """

    @property
    def caller(self) -> str:
        """The id of the caller's user, or an empty text for an anonymous caller."""

    @property
    def time(self) -> float:
        """Seconds since 1970, which never go back for one object, whatever the clocks of its homes say."""

    def remaining(self, since: float, timeout: float) -> float:
        """Seconds until ``timeout`` seconds have passed; 0 when they have.

        They count from ``since``, a :attr:`time`, or from the take-over of the object by its present home when that was
        later: what depends on a time-out keeps its whole time when the home changes.
        """

    @property
    def request_id(self) -> str:
        """The id of the call: the same when a call is sent twice."""


class ObjectClass:
    """The methods of typed objects of one class; one instance serves all of them, and keeps nothing."""

    name: ClassVar[str] = ""

    @classmethod
    def methods(cls) -> dict[str, bool]:
        """Name of each method → whether it writes."""
        found = ((name, getattr(getattr(cls, name), _METHOD, None)) for name in dir(cls) if not name.startswith("_"))
        return {name: writes for name, writes in found if writes is not None}


def method(*, writes: bool = False) -> Callable[[F], F]:
    """Mark a method that clients call; one that does not write gets a context that refuses changes."""

    def mark(function: F) -> F:
        setattr(function, _METHOD, writes)
        return function

    return mark
