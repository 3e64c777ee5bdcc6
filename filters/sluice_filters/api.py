"""The filter contract.

A filter transforms bytes and does no I/O: its host (a Swift worker, a
sandbox, a disk file, a block volume) supplies and receives the bytes.

* ``feed(data)`` takes the next bytes and returns the output that is ready (maybe empty); ``finish()`` is called once
  after the last feed and returns the rest.  How the input was split never changes the concatenated output.
* An encoder whose filter is reversible returns ``record()`` after ``finish``: a small JSON dictionary that is written
  beside the object and is the only input of a decoder besides the bytes, or None when the bytes were passed on
  unchanged.  Present policies have no effect on decoding.
* A decoder raises :class:`CorruptData` as soon as it detects an error, ``finish`` included, and never returns a byte
  that has not been checked.

A filter instance belongs to one configuration (parameters) and makes one encoder or decoder
per stream.  Encoders and decoders may be called from another thread, one call at a time.

A filter that processes whole requests and not bytes (answers in place of Swift, changes headers, acts afterwards) sets
``info.on_request`` and overrides ``visit``; see ``visits``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Self

from sluice_core.describe import ActionInfo, Parameter, Scalar
from sluice_filters.key_ring import KeyRing, NoKeys
from sluice_filters.stream import (
    BadParameter,
    CorruptData,
    FilterError,
    GroupEncoder,
    Hint,
    NeedIndex,
    Record,
    Stream,
    Transparent,
    Window,
)
from sluice_filters.visits import Call, ObjectCache, Visit

__all__ = [
    "BadParameter",
    "CorruptData",
    "Filter",
    "FilterEnvironment",
    "FilterError",
    "GroupEncoder",
    "Hint",
    "HostServices",
    "NeedIndex",
    "Record",
    "Stream",
    "Surroundings",
    "Team",
    "TeamStream",
    "Transparent",
    "Window",
    "check_parameters",
    "parse_parameter",
]


@dataclass(frozen=True, slots=True)
class HostServices:
    """Services of a host for the filters of its process."""

    keys: KeyRing = field(default_factory=NoKeys)
    cache: ObjectCache | None = None


class FilterEnvironment:
    """Filters of one isolated environment: adjacent ones enter their sandbox once.

    ``steps`` are adjacent, given in running order on PUT; a decoder and a reader run them backwards.
    """

    def encoder(self, steps: Sequence[Filter], hint: Hint) -> GroupEncoder:
        """One stream of the encoders of all ``steps``."""
        raise FilterError("this environment encodes nothing")

    def decoder(self, steps: Sequence[tuple[Filter, Record]], hint: Hint) -> Stream:
        """A stream that reverses all of ``steps``."""
        raise FilterError("this environment decodes nothing")

    def reader(self, steps: Sequence[Filter], hint: Hint) -> Stream:
        """One stream of the read-time transforms of all ``steps``."""
        raise FilterError("this environment reads nothing")


#: Earlier names, which uploaded code may import.
Surroundings = HostServices
Team = FilterEnvironment
TeamStream = GroupEncoder


class Filter:
    """Base of all filters: no parameters, no change.

    ``info`` describes the filter to the language, the registry and the host.  A subclass overrides the methods that it
    needs; the host calls

    * ``encoder(hint)`` on PUT when ``info.on_put``,
    * ``decoder(record)`` on GET of an object that carries ``record``, when ``info.reversible``,
    * ``reader(hint)`` on GET when ``info.on_get`` and a present policy sets the filter (read-time filter),
    * ``visit(call)`` on every object request when ``info.on_request`` and a present policy sets the filter.
    """

    info: ClassVar[ActionInfo]
    #: True when a feed of some 100 KB takes longer than a thread switch (about 100 µs).
    heavy: ClassVar[bool] = False
    #: Plain bytes after which an encoder is ``transparent``, if it can become so; 0 if it cannot.
    decides_within: ClassVar[int] = 0
    #: False when its output for the same bytes may change: with the version of a library, or at random.
    reproducible: ClassVar[bool] = True
    #: Request headers that a reader needs, in the case of the documentation.
    asks: ClassVar[tuple[str, ...]] = ()
    #: The isolated environment that runs it; None for native code.
    team: ClassVar[FilterEnvironment | None] = None
    #: The services of the process; set by :meth:`bound`.
    surroundings: ClassVar[HostServices] = HostServices()

    @classmethod
    def bound(cls, surroundings: HostServices) -> type[Self]:
        """Return this class bound to the services of a process."""
        return type(cls.__name__, (cls,), {"surroundings": surroundings, "__doc__": cls.__doc__})

    def __init__(self, params: Mapping[str, Scalar] | None = None) -> None:
        """
        :param params: values by parameter name; missing ones take their defaults
        :raises BadParameter: for an unknown name or a value out of its range
        """
        self.params: dict[str, Scalar | None] = check_parameters(self.info, params or {})

    def applies(self, hint: Hint) -> bool:
        """False when an encoder would certainly leave such a stream unchanged (too small, wrong type)."""
        return True

    def encoder(self, hint: Hint) -> Stream:
        """Return a stream that encodes one object on its way to the disks."""
        return Stream()

    def writes(self, record: Record) -> bool:
        """Whether an encoder of these parameters writes such a record (the same engine and key)."""
        return True

    def decoder(self, record: Record, window: Window | None = None) -> Stream:
        """Return a stream that reverses the filter by ``record``; with ``window`` only that part.

        :raises CorruptData: when ``record`` is not one that this filter writes
        :raises FilterError: when this version cannot reverse it (unknown engine, newer version)
        """
        raise FilterError(f"filter `{self.info.keyword}` is not reversible")

    def reads(self, hint: Hint) -> bool:
        """False when a read-time transform would certainly leave this answer unchanged (no header requests it)."""
        return True

    def span(self, hint: Hint) -> tuple[int, int | None] | None:
        """The plain bytes ``[start, stop)`` that a reader needs instead of all; stop None: to the end.

        ``hint.size`` is known.  The reader may be ``done`` earlier.
        """
        return None

    def reader(self, hint: Hint) -> Stream:
        """Return a read-time transform of one answer.

        :raises BadParameter: when the request is invalid; the client receives 400 with the reason
        """
        return Stream()

    def visit(self, call: Call) -> Visit | None:
        """Return the visit that accompanies one request, or None when this filter does not act on it."""
        return None

    def locate(self, record: Record, start: int, stop: int) -> Window | NeedIndex:
        """Return the window with the plain bytes ``[start, stop)``, ``0 <= start < stop <= plain size``.

        Only called when ``info.random_access``; the cost must be proportional to the range.
        """
        raise FilterError(f"filter `{self.info.keyword}` has no random access")

    def with_index(self, record: Record, index: bytes) -> Record:
        """Return ``record`` completed by the bytes that :class:`NeedIndex` requested."""
        raise FilterError(f"filter `{self.info.keyword}` has no index")

    @staticmethod
    def plain_size(record: Record) -> int:
        """Return the size of the plain object in bytes, from ``record["size"]``.

        :raises CorruptData: when the record does not have it
        """
        size = record.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise CorruptData(f"record without a size: `{dict(record)!r}`")
        return size


def _is_of_type(value: Scalar, wanted: str) -> bool:
    """Whether ``value`` is of parameter type ``wanted``; a bool is not a number, an int is a float."""
    if wanted == "bool" or isinstance(value, bool):
        return wanted == "bool" and isinstance(value, bool)
    if wanted in ("str", "list"):
        return isinstance(value, str)
    return isinstance(value, int) or (isinstance(value, float) and wanted not in ("int", "size"))


#: Parsers by the type of a parameter; values of other types are strings.
_READERS: Final[Mapping[str, Callable[[str], Scalar]]] = {
    "int": int,
    "size": int,
    "float": float,
    "bool": lambda text: text == "true",
}


def parse_parameter(parameter: Parameter, text: str) -> Scalar:
    """Parse the text of a parameter's value, without a unit.

    :raises BadParameter: when the text is not a value of the parameter's type
    """
    try:
        return _READERS.get(parameter.type, str)(text)
    except ValueError as error:
        raise BadParameter(f"`{parameter.name}` is `{text}`, expected a {parameter.type}") from error


def check_parameters(info: ActionInfo, given: Mapping[str, Scalar]) -> dict[str, Scalar | None]:
    """Return every parameter of ``info`` with its value.

    :raises BadParameter: for unknown names, wrong types and values out of range, with all faults
    """
    what = f"{info.kind} `{info.keyword}`"
    faults = [f"{what} has no parameter `{name}`" for name in given if info.parameter(name) is None]
    values: dict[str, Scalar | None] = {}
    for parameter in info.parameters:
        value = values[parameter.name] = given.get(parameter.name, parameter.default)
        if value is not None:
            faults += _value_faults(value, info.with_range(parameter, given))
        elif parameter.required:
            faults.append(f"{what} needs parameter `{parameter.name}`")
    if faults:
        raise BadParameter("; ".join(faults))
    return values


def _value_faults(value: Scalar, parameter: Parameter) -> list[str]:
    """Return the faults of one parameter's value."""
    if not _is_of_type(value, parameter.type):
        return [f"`{parameter.name}` is `{value!r}`, expected a {parameter.type}"]
    if parameter.choices and value not in parameter.choices:
        names = ", ".join(str(choice) for choice in parameter.choices)
        return [f"`{parameter.name}` is `{value}`, expected one of {names}"]
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = parameter.minimum, parameter.maximum
        if (low is not None and value < low) or (high is not None and value > high):
            return [f"`{parameter.name}` is `{value}`, expected {low} to {high}"]
    return []
