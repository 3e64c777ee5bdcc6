"""Uploaded native filters: their description in the registration, and their class from verified code.

A trial (``sluice_filters.trial.trial``) reads the code's own description and writes it into ``Upload.info``, so the
description is available without loading code.  The version of such a filter is its revision.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any, Final

from sluice_code.code_store import BadUpload
from sluice_code.loader import load_class
from sluice_core.describe import (
    FILTER,
    NATIVE,
    OBJECT_METHODS,
    PARAMETER_TYPES,
    PLACES,
    RESOURCE_TYPES,
    ActionInfo,
    Parameter,
)
from sluice_core.messages.uploads import Upload
from sluice_filters.api import Filter

#: Fields that come from the registration, not from the code.
_REGISTERED: Final = frozenset({"keyword", "kind", "version", "environment"})
_DECLARED: Final = frozenset(one.name for one in fields(ActionInfo)) - _REGISTERED
_OF_PARAMETER: Final = frozenset(one.name for one in fields(Parameter))


def declared_fields(info: ActionInfo) -> dict[str, Any]:
    """Return the description of a filter for ``Upload.info``: JSON data."""
    declared = {name: value for name, value in asdict(info).items() if name in _DECLARED}
    data: dict[str, Any] = json.loads(json.dumps(declared))
    return data


def native_info(upload: Upload) -> ActionInfo:
    """Return the description of an uploaded native filter for the language and the hosts.

    :raises BadUpload: when the stored description is not that of a filter
    """
    if upload.environment != NATIVE:
        raise BadUpload(f"filter `{upload.keyword}` is for `{upload.environment}`, expected `{NATIVE}`")
    declared = {name: value for name, value in upload.info.items() if name in _DECLARED}
    try:
        values: dict[str, Any] = {"help": f"uploaded filter, revision {upload.revision}", **declared}
        values["parameters"] = tuple(map(_read_parameter, declared.get("parameters", ())))
        values |= {name: tuple(values[name]) for name in ("places", "methods", "about") if name in values}
        return ActionInfo(keyword=upload.keyword, kind=FILTER, version=upload.revision, environment=NATIVE, **values)
    except (TypeError, ValueError, AttributeError) as error:
        raise BadUpload(f"description of filter `{upload.keyword}`: {error}") from error


def _read_parameter(data: Mapping[str, Any]) -> Parameter:
    return Parameter.from_data({name: value for name, value in data.items() if name in _OF_PARAMETER})


def native_filter(upload: Upload, code: bytes) -> type[Filter]:
    """Return the filter in ``code`` (verified); it has the ``upload`` as an attribute.

    :raises BadUpload: when it cannot be loaded, or is not the registered filter
    """
    info = native_info(upload)
    kind: type[Filter] = load_class(code, upload.sha256, Filter, upload.main)
    fault = unfit_reason(kind, upload.keyword)
    if fault:
        raise BadUpload(fault)
    return type(kind.__name__, (kind,), {"info": info, "upload": upload, "__doc__": kind.__doc__})


def unfit_reason(kind: type[Filter], keyword: str = "") -> str:
    """Return why a class of uploaded code cannot be the filter ``keyword``, by its description; empty when it can."""
    info = getattr(kind, "info", None)
    if not isinstance(info, ActionInfo):
        return f"class `{kind.__name__}` has no `info` that is an ActionInfo"
    if keyword and info.keyword != keyword:
        return f"the code calls itself `{info.keyword}`, expected `{keyword}`"
    return "; ".join(description_faults(info))


def contradictions(info: ActionInfo) -> list[str]:
    """Return the contradictions in the description of an uploaded filter."""
    rules = (
        (info.default_place in info.places, f"default place `{info.default_place}` is none of its places"),
        (info.on_put or not info.reversible, "it can be undone, but does not run on PUT"),
        (not (info.reversible and info.on_get), "it is both undone on GET and run on GET"),
        (info.changes_content or not info.reversible, "it can be undone, but changes nothing"),
        (info.changes_content or not info.changes_length, "it changes the length, but not the content"),
        (
            not info.reversible or not any(parameter.required for parameter in info.parameters),
            "it can be undone, but needs a parameter",
        ),
    )
    return [fault for holds, fault in rules if not holds] + list(_range_faults(info))


def _range_faults(info: ActionInfo) -> Iterator[str]:
    """Yield the faults of ranges that depend on another parameter."""
    for parameter in info.parameters:
        if not isinstance(parameter, Parameter) or not (parameter.ranges or parameter.range_by):
            continue
        named = f"parameter `{parameter.name}`"
        by = next((other for other in info.parameters if other.name == parameter.range_by), None)
        if by is None or by.range_by:
            yield f"{named} has ranges by `{parameter.range_by}`, expected another parameter, without such"
        for limits in parameter.ranges:
            bounds: tuple[object, object] = (limits.minimum, limits.maximum)  # from uploaded code, so of any type
            if not all(isinstance(bound, int | float) for bound in bounds):
                yield f"{named} has a range of `{limits.minimum}` to `{limits.maximum}`, expected numbers"


def description_faults(info: ActionInfo) -> list[str]:
    """Return the faults and contradictions of a description."""
    works = info.on_put or info.on_get or info.on_request
    rules = (
        (_is_keyword(info.keyword), f"keyword `{info.keyword}`, expected lower case letters, digits and `_`"),
        (info.kind == FILTER, f"kind `{info.kind}`, expected `{FILTER}`"),
        (bool(info.help), "it has no `help`"),
        (set(info.places) <= set(PLACES) and bool(info.places), f"places `{info.places}`, expected some of {PLACES}"),
        (
            set(info.about) <= set(RESOURCE_TYPES) and bool(info.about),
            f"about `{info.about}`, expected some of {RESOURCE_TYPES}",
        ),
        (works, "it runs neither on PUT nor on GET nor on requests"),
        (info.reversible or not info.random_access, "it has random access, but cannot be undone"),
        (info.on_request or not info.methods, "it has methods, but does not accompany requests"),
        (info.on_request or not info.on_answer, "it begins with the answer, but does not accompany requests"),
        (set(info.methods) <= set(OBJECT_METHODS), f"methods `{info.methods}`, expected some of {OBJECT_METHODS}"),
    )
    faults = [fault for holds, fault in rules if not holds] + contradictions(info)
    for parameter in info.parameters:
        if not isinstance(parameter, Parameter) or not parameter.name or parameter.name != parameter.name.lower():
            faults.append(f"parameter `{parameter}`, expected a Parameter with a name in lower case")
        elif parameter.type not in PARAMETER_TYPES:
            faults.append(
                f"parameter `{parameter.name}` is of type `{parameter.type}`, expected {', '.join(PARAMETER_TYPES)}"
            )
    return faults


def _is_keyword(text: object) -> bool:
    return isinstance(text, str) and text.replace("_", "").isalnum() and text == text.lower()
