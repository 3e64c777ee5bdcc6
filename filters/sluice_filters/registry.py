"""Which filters there are: ours in one literal list, strangers by entry point.

A plugin is a distribution with an entry point in the group ``sluice.filters`` that names a
:class:`~sluice_filters.api.Filter`.  One that cannot be loaded is reported and left out, so a broken
plugin never keeps Swift from starting.
"""

from __future__ import annotations

from typing import Final

from sluice_core.describe import ActionInfo
from sluice_core.plugins import load_plugins
from sluice_filters.api import Filter
from sluice_filters.compression import Compression
from sluice_filters.noop import Noop

GROUP: Final = "sluice.filters"

BUILT_IN: Final[tuple[type[Filter], ...]] = (
    Noop,
    Compression,
)


def load_filters(failures: dict[str, str] | None = None) -> dict[str, type[Filter]]:
    """Every usable filter by its keyword, ours first.

    :param failures: takes the reason of each plugin that was left out, by the entry point's name
    """
    return load_plugins(GROUP, BUILT_IN, lambda one: one.info.keyword, _unfit, failures)


def _unfit(plugin: object) -> str:
    """Why ``plugin`` cannot be used; empty when it can."""
    if not (isinstance(plugin, type) and issubclass(plugin, Filter)):
        return f"`{plugin!r}` is not a subclass of Filter"
    info = getattr(plugin, "info", None)
    if not isinstance(info, ActionInfo):
        return "it has no `info`"
    if info.keyword != info.keyword.lower():
        return f"keyword `{info.keyword}` is not in lower case"
    return ""


def descriptions(filters: dict[str, type[Filter]] | None = None) -> dict[str, ActionInfo]:
    """What the installed filters say of themselves, by keyword."""
    return {keyword: one.info for keyword, one in (load_filters() if filters is None else filters).items()}
