"""The built-in filters as they describe themselves, for where none is installed (``sluice-dsl`` alone).

The language may not import a filter, so ``builtin_filters.json`` is a copy, made by `tools/builtin-filters`; a test of
the filters compares both.  The file is a catalogue file (``catalogue_file``) of actions alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any, Final

from sluice_core.describe import ActionInfo, Parameter


def read_actions(data: Iterable[Mapping[str, Any]]) -> list[ActionInfo]:
    """The actions that a catalogue file describes, each by the fields that are not their defaults.

    :raises TypeError: for fields that an action or a parameter does not have, and for missing ones
    """
    found = []
    for one in data:
        parameters = tuple(map(Parameter.from_data, one.get("parameters", ())))
        found.append(ActionInfo(**freeze_lists({**one, "parameters": parameters})))
    return found


def freeze_lists(data: Mapping[str, Any]) -> dict[str, Any]:
    """``data`` out of JSON with tuples in the place of its lists, as descriptions have them."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}


_FILE: Final = resources.files("sluice_dsl.catalogue").joinpath("builtin_filters.json")
#: In the order of their stages.
BUILTIN_FILTERS: Final = tuple(read_actions(json.loads(_FILE.read_text(encoding="utf-8"))["actions"]))
