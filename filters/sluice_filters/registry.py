"""The installed filters: built-in ones in one literal list, third-party ones by entry point.

A plugin is a distribution with an entry point in the group ``sluice.filters`` that names a
:class:`~sluice_filters.api.Filter`.  A plugin that cannot be loaded is reported and left out, so a broken plugin does
not keep Swift from starting.
"""

from __future__ import annotations

from typing import Final

from sluice_code.plugins import load_plugins
from sluice_core.describe import ActionInfo
from sluice_filters.api import Filter, HostServices
from sluice_filters.basic.bitrev import BitReverse
from sluice_filters.basic.noop import Noop
from sluice_filters.basic.sanitise import Sanitise
from sluice_filters.basic.thumbnail import Thumbnail
from sluice_filters.basic.xor import Xor
from sluice_filters.compression.compression import Compression
from sluice_filters.csv.select import CsvSelect
from sluice_filters.csv.tables.index import CsvIndex
from sluice_filters.csv.tables.parquet import CsvToParquet
from sluice_filters.csv.tables.sort import CsvSort
from sluice_filters.encryption.checksum import Checksum
from sluice_filters.encryption.encryption import Encryption
from sluice_filters.requests.caching import Caching
from sluice_filters.requests.delete_guard import DeleteGuard
from sluice_filters.requests.prefetch import Prefetch
from sluice_filters.requests.tagging import Tagging
from sluice_filters.timeseries.downsample import Downsample
from sluice_filters.timeseries.upsample import Upsample

GROUP: Final = "sluice.filters"

#: In the order of their stages.
BUILT_IN: Final[tuple[type[Filter], ...]] = (
    Tagging,
    Prefetch,
    Caching,
    DeleteGuard,
    Noop,
    Thumbnail,
    CsvToParquet,
    CsvIndex,
    CsvSort,
    CsvSelect,
    Downsample,
    Upsample,
    Sanitise,
    Compression,
    Encryption,
    BitReverse,
    Xor,
    Checksum,
)


def load_filters(
    failures: dict[str, str] | None = None, surroundings: HostServices | None = None
) -> dict[str, type[Filter]]:
    """Return every usable filter by its keyword, built-in ones first.

    :param failures: receives the reason of each plugin that was left out, by the entry point's name
    :param surroundings: the services of the process for the filters; without them there are no keys
    """
    filters = load_plugins(GROUP, BUILT_IN, lambda one: one.info.keyword, _unfit, failures)
    if surroundings is None:
        return filters
    return {keyword: one.bound(surroundings) for keyword, one in filters.items()}


def _unfit(plugin: object) -> str:
    """Return why ``plugin`` cannot be used; empty when it can."""
    if not (isinstance(plugin, type) and issubclass(plugin, Filter)):
        return f"`{plugin!r}` is not a subclass of Filter"
    info = getattr(plugin, "info", None)
    if not isinstance(info, ActionInfo):
        return "it has no `info`"
    if info.keyword != info.keyword.lower():
        return f"keyword `{info.keyword}` is not in lower case"
    return ""


def descriptions(filters: dict[str, type[Filter]] | None = None) -> dict[str, ActionInfo]:
    """Return the descriptions of the installed filters, by keyword."""
    return {keyword: one.info for keyword, one in (load_filters() if filters is None else filters).items()}
