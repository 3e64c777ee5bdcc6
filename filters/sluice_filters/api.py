"""The filter contract.

A filter turns bytes into bytes and does no I/O: its host (a Swift worker, a
sandbox, a disk file, a block volume) brings bytes and takes bytes.

* ``feed(data)`` takes the next bytes and returns what can be passed on (maybe nothing);
  ``finish()`` is called once after the last feed and returns the rest.  How the input was
  cut into pieces never changes the concatenated output.
* An encoder whose filter is reversible answers ``record()`` after ``finish``: a small JSON
  dictionary that is written beside the object and is all that a decoder is given, or None
  when the bytes were passed on unchanged.  What a policy says today plays no part in decoding.
* A decoder raises :class:`CorruptData` as soon as something is wrong, ``finish`` included, and
  never returns a byte that has not been checked.

A filter instance belongs to one configuration (parameters) and makes one encoder or decoder
per stream.  Encoders and decoders may be called from another thread, one call at a time.

A filter that wants to see whole requests rather than bytes (answer instead of Swift, change headers,
do something afterwards) sets ``info.on_request`` and overrides ``visit``; see ``visits``.
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
    """What a host lends to the filters of its process."""

    keys: KeyRing = field(default_factory=NoKeys)
    cache: ObjectCache | None = None


class FilterEnvironment:
    """Filters of one isolated environment: those next to each other enter their sandbox once.

    ``steps`` are neighbours, given in running order on PUT; a decoder and a reader run them backwards.
    """

    def encoder(self, steps: Sequence[Filter], hint: Hint) -> GroupEncoder:
        """One stream of the encoders of all ``steps``."""
        raise FilterError("this environment encodes nothing")

    def decoder(self, steps: Sequence[tuple[Filter, Record]], hint: Hint) -> Stream:
        """What undoes all of ``steps``."""
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

    ``info`` describes the filter to the language, the registry and the host.  A subclass
    overrides what it does; the host calls

    * ``encoder(hint)`` on PUT when ``info.on_put``,
    * ``decoder(record)`` on GET of an object that carries ``record``, when ``info.reversible``,
    * ``reader(hint)`` on GET when ``info.on_get`` and a policy says so today (read-time filter),
    * ``visit(call)`` on every object request when ``info.on_request`` and a policy says so today.
    """

    info: ClassVar[ActionInfo]
    #: True when a feed of some 100 KB takes longer than a thread switch (about 100 µs).
    heavy: ClassVar[bool] = False
    #: Plain bytes after which an encoder has become ``transparent`` if it ever will; 0 when it never does.
    decides_within: ClassVar[int] = 0
    #: False when its output for the same bytes may change: with the version of a library that it calls, or by chance.
    reproducible: ClassVar[bool] = True
    #: Request headers that a reader needs, as they are written in documentation.
    asks: ClassVar[tuple[str, ...]] = ()
    #: The isolated environment that runs it; None for native code.
    team: ClassVar[FilterEnvironment | None] = None
    #: The services that the process lends; set by :meth:`bound`.
    surroundings: ClassVar[HostServices] = HostServices()

    @classmethod
    def bound(cls, surroundings: HostServices) -> type[Self]:
        """Returns this class bound to the services of a process."""
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
        """A stream that encodes one object on its way to the disks."""
        return Stream()

    def writes(self, record: Record) -> bool:
        """Whether an encoder of these parameters writes such a record, and not one of another engine or key."""
        return True

    def decoder(self, record: Record, window: Window | None = None) -> Stream:
        """A stream that undoes what ``record`` describes; with ``window`` only that part.

        :raises CorruptData: when ``record`` is not one that this filter writes
        :raises FilterError: when this version cannot undo it (unknown engine, newer version)
        """
        raise FilterError(f"filter `{self.info.keyword}` is not reversible")

    def reads(self, hint: Hint) -> bool:
        """False when a read-time transform would certainly leave this answer unchanged (no header asks for it)."""
        return True

    def span(self, hint: Hint) -> tuple[int, int | None] | None:
        """The plain bytes ``[start, stop)`` that a reader wants to be fed instead of all; stop None: to the end.

        ``hint.size`` is known.  The reader may be ``done`` earlier.
        """
        return None

    def reader(self, hint: Hint) -> Stream:
        """A read-time transform of one answer.

        :raises BadParameter: when the request makes no sense; the client gets 400 with the reason
        """
        return Stream()

    def visit(self, call: Call) -> Visit | None:
        """The visit that accompanies one request, or None when this filter has nothing to do for it."""
        return None

    def locate(self, record: Record, start: int, stop: int) -> Window | NeedIndex:
        """The window that holds the plain bytes ``[start, stop)``, ``0 <= start < stop <= plain size``.

        Only called when ``info.random_access``; must cost no more than the range.
        """
        raise FilterError(f"filter `{self.info.keyword}` has no random access")

    def with_index(self, record: Record, index: bytes) -> Record:
        """Returns ``record`` completed by the bytes that :class:`NeedIndex` asked for."""
        raise FilterError(f"filter `{self.info.keyword}` has no index")

    @staticmethod
    def plain_size(record: Record) -> int:
        """Size of the plain object in bytes, out of ``record["size"]``.

        :raises CorruptData: when the record does not hold it
        """
        size = record.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise CorruptData(f"record without a size: `{dict(record)!r}`")
        return size


def _is_of_type(value: Scalar, wanted: str) -> bool:
    """Whether ``value`` is of parameter type ``wanted``; a bool is no number, an int is a float."""
    if wanted == "bool" or isinstance(value, bool):
        return wanted == "bool" and isinstance(value, bool)
    if wanted in ("str", "list"):
        return isinstance(value, str)
    return isinstance(value, int) or (isinstance(value, float) and wanted not in ("int", "size"))


#: Parsers by the type of a parameter; values of other types are texts.
_READERS: Final[Mapping[str, Callable[[str], Scalar]]] = {
    "int": int,
    "size": int,
    "float": float,
    "bool": lambda text: text == "true",
}


def parse_parameter(parameter: Parameter, text: str) -> Scalar:
    """Parse the text of a parameter's value, without a unit.

    :raises BadParameter: when the text is no value of the parameter's type
    """
    try:
        return _READERS.get(parameter.type, str)(text)
    except ValueError as error:
        raise BadParameter(f"`{parameter.name}` is `{text}`, expected a {parameter.type}") from error


def check_parameters(info: ActionInfo, given: Mapping[str, Scalar]) -> dict[str, Scalar | None]:
    """Every parameter of ``info`` with its value.

    :raises BadParameter: unknown names, wrong types and values out of range, all faults at once
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
    """The faults of the value of one parameter."""
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
