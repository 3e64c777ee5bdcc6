"""Built-in vocabulary: actions that are no filters, terms for media types, and a catalogue for offline use.

``KNOWN_ACTIONS`` and ``TERMS`` go into every catalogue; installed filters and metrics describe themselves and replace a
known action of the same name.  ``default_catalogue`` is for ``sluice-dsl`` alone, which may run where no filter is
installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from sluice_core.describe import (
    BANDWIDTH,
    NAMESPACE,
    PLACES,
    REPLICATION,
    STORAGE_NODE,
    ActionInfo,
    MetricInfo,
    Parameter,
)
from sluice_core.messages.bandwidth import CLASSES
from sluice_core.metrics.usage_metrics import AGENT_METRICS
from sluice_core.motifs.actions import MOTIF_ACTIONS
from sluice_core.volumes.actions import VOLUME_ACTIONS
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.catalogue.builtin_filters import BUILTIN_FILTERS
from sluice_dsl.catalogue.parameter_checks import find_parameter_checks


def _by_keyword(*actions: ActionInfo) -> Mapping[str, ActionInfo]:
    return {action.keyword: action for action in actions}


#: Bytes per second that nothing may be promised or held to beyond: 1 TB/s.
MOST_BANDWIDTH: Final = 1e12


def _rate(name: str, text: str, required: bool = False) -> Parameter:
    """A rate that is promised or held to; without a unit it is MB/s (``sluice_dsl.checks.bandwidth_checks``)."""
    return Parameter(name, "rate", text, minimum=1.0, maximum=MOST_BANDWIDTH, required=required)


#: Words of the language that are no filters; those not available need something to be installed for them.
KNOWN_ACTIONS: Final = _by_keyword(
    ActionInfo(
        "bandwidth",
        BANDWIDTH,
        "guarantee and limit the bytes per second of a tenant",
        (
            _rate("get_bw", "floor of what clients receive, over the whole cluster; a bare number is MB/s"),
            _rate("put_bw", "floor of what clients send, over the whole cluster; a bare number is MB/s"),
            _rate("max_get_bw", "ceiling of what clients receive, over the whole cluster; a bare number is MB/s"),
            _rate("max_put_bw", "ceiling of what clients send, over the whole cluster; a bare number is MB/s"),
            _rate("node_get_bw", "floor of what each object server gives; a bare number is MB/s"),
            Parameter("storage_policy", "str", "name or index of the one that is spoken of; empty: all"),
            Parameter(
                "class",
                "str",
                "level of its disk I/O while it is not below its floor: gold is 1, silver 4, bronze 7",
                choices=(*CLASSES, *map(str, range(1, 8))),
            ),
        ),
        places=PLACES,
    ),
    ActionInfo(
        "replication",
        REPLICATION,
        "limit the traffic of background replication",
        (_rate("max_bw", "ceiling over the whole cluster; a bare number is MB/s", required=True),),
        places=(STORAGE_NODE,),
        default_place=STORAGE_NODE,
    ),
    ActionInfo("namespace", NAMESPACE, "answer from another namespace", available=False),
    *(replace(one, available=False) for one in (*MOTIF_ACTIONS, *VOLUME_ACTIONS)),
)

#: Filters that are set for the sake of the bytes they save.
SPACE_SAVING_FILTERS: Final = frozenset({"compression"})

#: Coined terms: extensions and media types.
TERMS: Final[Mapping[str, tuple[str, ...]]] = {
    "DOCS": (
        "pdf", "doc", "docx", "odt", "rtf", "xls", "xlsx", "ods", "ppt", "pptx", "odp",
        "application/pdf", "application/msword", "application/rtf",
    ),
    "IMAGES": ("jpg", "jpeg", "png", "gif", "bmp", "tif", "tiff", "webp", "svg", "heic", "image/*"),
    "VIDEO": ("mp4", "mkv", "avi", "mov", "webm", "mpg", "mpeg", "video/*"),
    "AUDIO": ("mp3", "wav", "flac", "ogg", "m4a", "aac", "opus", "audio/*"),
    "LOGS": ("log", "logs", "syslog", "journal"),
    "ARCHIVES": (
        "zip", "gz", "tgz", "bz2", "xz", "zst", "7z", "rar", "tar", "jar",
        "application/zip", "application/gzip", "application/zstd", "application/x-tar", "application/x-7z-compressed",
    ),
    "TEXT": ("txt", "md", "rst", "csv", "tsv", "json", "xml", "html", "text/*", "application/json", "application/xml"),
}  # fmt: skip

_LEVELS: Final = ("tenant", "container", "cluster")
_OFFLINE_METRICS: Final = (
    MetricInfo("GETS_SEC", "per_second", "GET requests let in", ("object", *_LEVELS)),
    MetricInfo("PUTS_SEC", "per_second", "PUT requests let in", ("object", *_LEVELS)),
    MetricInfo("GET_BW", "bytes_per_second", "bytes sent to clients", ("object", *_LEVELS)),
    MetricInfo("PUT_BW", "bytes_per_second", "bytes received from clients", ("object", *_LEVELS)),
    MetricInfo("THROUGHPUT", "bytes_per_second", "bytes in both directions", ("object", *_LEVELS)),
    MetricInfo("COMPRESSIBILITY", "ratio", "how many times smaller uploads become", ("tenant", "container")),
    MetricInfo("ACTIVE_REQUESTS", "count", "requests at work", _LEVELS),
    *AGENT_METRICS,
    MetricInfo("ERRORS", "fraction", "share of responses with a status of 5xx", _LEVELS),
    MetricInfo("RESPONSE_TIME", "seconds", "median time of a response", _LEVELS, aliases=("RESPONSE_TIME_P50",)),
    MetricInfo("RESPONSE_TIME_P95", "seconds", "time that 95 % of the responses do not exceed", _LEVELS),
    MetricInfo("RESPONSE_TIME_P99", "seconds", "time that 99 % of the responses do not exceed", _LEVELS),
    MetricInfo("HIT_RATIO", "fraction", "share of reads that the cache answers where it is searched", _LEVELS),
)


def default_catalogue() -> Catalogue:
    """The project's own words, as a fresh cluster has them."""
    return Catalogue(
        actions={**KNOWN_ACTIONS, **_by_keyword(*BUILTIN_FILTERS)},
        metrics={metric.name: metric for metric in _OFFLINE_METRICS},
        terms=TERMS,
        trials=find_parameter_checks(),
    )
