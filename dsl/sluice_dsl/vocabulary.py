"""Words that the project knows: what is not enforced yet, coined terms, and a catalogue for offline use.

``KNOWN_WORDS`` and ``TERMS`` go into every catalogue; installed filters and metrics describe
themselves and take the place of a known word of the same name.  ``default_catalogue`` is for
``sluice-dsl`` alone, which may run where no filter is installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sluice_core.describe import (
    BANDWIDTH,
    MOTIF,
    NAMESPACE,
    REPLICATION,
    STORAGE_NODE,
    ActionInfo,
    MetricInfo,
    Parameter,
)
from sluice_dsl.catalogue import Catalogue
from sluice_dsl.shipped import SHIPPED_FILTERS


def _by_keyword(*actions: ActionInfo) -> Mapping[str, ActionInfo]:
    return {action.keyword: action for action in actions}


#: Words of the language that a cluster cannot enforce unless something is installed for them.
KNOWN_WORDS: Final = _by_keyword(
    ActionInfo(
        "bandwidth",
        BANDWIDTH,
        "guarantee and limit the bytes per second of a tenant",
        (
            Parameter("get_bw", "rate", "floor of what clients receive"),
            Parameter("put_bw", "rate", "floor of what clients send"),
            Parameter("max_get_bw", "rate", "ceiling of what clients receive"),
            Parameter("max_put_bw", "rate", "ceiling of what clients send"),
        ),
        available=False,
    ),
    ActionInfo(
        "replication",
        REPLICATION,
        "limit the traffic of background replication",
        (Parameter("max_bw", "rate", "ceiling per node"),),
        places=(STORAGE_NODE,),
        default_place=STORAGE_NODE,
        available=False,
    ),
    ActionInfo(
        "elasticity",
        MOTIF,
        "keep a container within a size",
        (Parameter("target_size", "size", "size to keep to"),),
        available=False,
    ),
    ActionInfo("namespace", NAMESPACE, "answer from another namespace", available=False),
)

#: Filters that are set for the sake of the bytes they save.
SAVES_SPACE: Final = frozenset({"compression"})

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
)


def default_catalogue() -> Catalogue:
    """The project's own words, as a fresh cluster has them."""
    return Catalogue(
        actions={**KNOWN_WORDS, **_by_keyword(*SHIPPED_FILTERS)},
        metrics={metric.name: metric for metric in _OFFLINE_METRICS},
        terms=TERMS,
    )
