"""The adapter to YAML, restricted to what JSON can express.

A document is first scanned as a stream of events.  Aliases, anchors, tags, duplicate names, excessive depth and a
second document are refused there, before anything is built.  Then the safe loader builds it, and only texts, numbers,
booleans and null are accepted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from sluice_core.errors import CallerError

MEDIA_TYPE: Final = "application/yaml"
#: The maximum depth of nested lists and mappings.
DEEPEST: Final = 20
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_WIDTH: Final = 120


def dump(data: Any) -> bytes:
    """``data`` as a document, in its own order, with one line per text if possible."""
    text: str = yaml.dump(data, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return text.encode()


def load(raw: bytes) -> Any:
    """The data in a document.

    :raises CallerError: when it is not YAML, or has features of YAML that are not accepted
    """
    try:
        text = raw.decode("utf-8")
        _look_through(text)
        data = yaml.load(text, Loader=_LOADER)  # noqa: S506 -- the safe loader, in C
        _only_plain(data)
    except yaml.YAMLError as error:
        raise CallerError(f"the body is not YAML: {_brief(error)}") from None
    except RecursionError:
        raise CallerError("the body is nested too deeply") from None
    except ValueError as error:  # not UTF-8, an invalid date, a number of thousands of digits
        raise CallerError(f"the body is not YAML: {str(error)[:200]}") from None
    return data


def _brief(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    mark = getattr(error, "problem_mark", None)
    return f"{problem} in line {mark.line + 1}" if mark is not None else str(problem)


@dataclass(slots=True)
class _Open:
    """An open list or mapping; for a mapping: its names so far, and whether the next event is a name."""

    mapping: bool
    names: set[str] = field(default_factory=set)
    name_next: bool = True


def _look_through(text: str) -> None:
    """Refuse events that must not be built."""
    inside: list[_Open] = []
    documents = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise CallerError("the body contains several YAML documents, expected one")
        elif isinstance(event, yaml.CollectionEndEvent):
            inside.pop()
        elif isinstance(event, yaml.NodeEvent):
            _refuse_more_than_data(event)
            if inside and inside[-1].mapping:
                _in_mapping(event, inside[-1])
            if isinstance(event, yaml.CollectionStartEvent):
                if len(inside) >= DEEPEST:
                    raise CallerError(f"{_where(event)}: nested more than {DEEPEST} deep")
                inside.append(_Open(isinstance(event, yaml.MappingStartEvent)))


def _refuse_more_than_data(event: Any) -> None:
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise CallerError(f"{_where(event)}: anchors and aliases are not accepted")
    if event.tag is not None:
        raise CallerError(f"{_where(event)}: tags such as `{event.tag}` are not accepted")


def _in_mapping(event: Any, mapping: _Open) -> None:
    """Check a name or a value, which alternate."""
    if mapping.name_next:
        if not isinstance(event, yaml.ScalarEvent):
            raise CallerError(f"{_where(event)}: a name in a mapping is not a text")
        if event.value in mapping.names:
            raise CallerError(f"{_where(event)}: `{event.value}` is given twice")
        mapping.names.add(event.value)
    mapping.name_next = not mapping.name_next


def _where(event: Any) -> str:
    return f"line {event.start_mark.line + 1}"


def _only_plain(data: Any) -> None:
    """
    :raises CallerError: when it contains a value that JSON does not have
    """
    if isinstance(data, Mapping):
        for name, value in data.items():
            if not isinstance(name, str):
                raise CallerError(f"the name `{name}` in a mapping is not a text, expected quotes around it")
            _only_plain(name)
            _only_plain(value)
    elif isinstance(data, list):
        for value in data:
            _only_plain(value)
    elif isinstance(data, str):
        data.encode()  # raises ValueError for half a surrogate pair
    elif isinstance(data, float):
        if not math.isfinite(data):
            raise CallerError(f"`{data}` is not a number that can be stored")
    elif not (data is None or isinstance(data, int)):
        raise CallerError(f"`{data}` is a {type(data).__name__}, expected quotes around it")
