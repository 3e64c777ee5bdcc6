"""Built-in vocabulary: actions that are not filters, terms for media types, and the catalogue that all others extend.

``KNOWN_ACTIONS`` and ``TERMS`` go into every catalogue; filters and metrics describe themselves and replace a known
action of the same name.  The API makes the base catalogue from the installed filters and metrics; ``sluice-dsl`` and
the actors, which may run without installed filters, make it from copies of the descriptions.

A description has types, choices and ranges.  A filter whose parameters have more rules (the syntax of a condition on
rows, two columns that must differ) registers a function in the entry point group ``sluice.parameter_checks``, under its
keyword.  The function takes the given parameters and raises a :class:`~sluice_core.errors.CallerError`.  The API calls
the filters themselves, which run the same code.  So a check must be importable where the filters' codecs are not
installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import EntryPoint
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
    Scalar,
)
from sluice_core.errors import CallerError
from sluice_core.messages.bandwidth import CLASSES
from sluice_core.metrics.usage_metrics import AGENT_METRICS
from sluice_core.process.entry_points import installed_entry_points
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.catalogue.builtin_words import BUILTIN_FILTERS, BUILTIN_METRICS
from sluice_motif_control.actions import MOTIF_ACTIONS
from sluice_volumes.actions import VOLUME_ACTIONS

#: Entry points of the checks of parameters beyond a filter's description.
GROUP: Final = "sluice.parameter_checks"
ParameterCheck = Callable[[Mapping[str, Scalar]], object]


def find_parameter_checks() -> dict[str, ParameterCheck]:
    """The check of each keyword with one; its code is loaded at the first call."""
    return {entry.name: partial(_check, entry) for entry in installed_entry_points(GROUP)}


def _check(entry: EntryPoint, params: Mapping[str, Scalar]) -> None:
    """
    :raises CallerError: for parameters that the filter would refuse, and when the check cannot be loaded
    """
    try:
        check = entry.load()
    except (ImportError, AttributeError) as error:
        raise CallerError(f"parameters cannot be checked here: `{entry.value}`: {error}") from error
    check(params)


def _by_keyword(*actions: ActionInfo) -> Mapping[str, ActionInfo]:
    return {action.keyword: action for action in actions}


#: The greatest floor or ceiling in bytes per second: 1 TB/s.
MOST_BANDWIDTH: Final = 1e12


def _rate(name: str, text: str, required: bool = False) -> Parameter:
    """A floor or a ceiling; without a unit it is MB/s (``sluice_dsl.checks.bandwidth_checks``)."""
    return Parameter(name, "rate", text, minimum=1.0, maximum=MOST_BANDWIDTH, required=required)


#: Words of the language that are not filters; unavailable ones need an installed service.
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

#: Filters that are set to save bytes.
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


def base_catalogue(
    filters: Mapping[str, ActionInfo],
    metrics: Mapping[str, MetricInfo],
    trials: Mapping[str, Callable[[Mapping[str, Scalar]], object]],
) -> Catalogue:
    """Return the words of a cluster with these filters and metrics, without its other services.

    :param filters: by keyword; they replace known actions of their names
    :param metrics: metrics that proxies and storage nodes count, by name
    :param trials: checks of the parameters together, by keyword
    """
    return Catalogue(
        actions={**KNOWN_ACTIONS, **filters},
        metrics={**{one.name: one for one in AGENT_METRICS}, **metrics},
        terms=TERMS,
        trials=trials,
    )


def default_catalogue() -> Catalogue:
    """The words of a new cluster without motif daemons and volumes, from the copies of descriptions."""
    metrics = {metric.name: metric for metric in BUILTIN_METRICS}
    return base_catalogue(_by_keyword(*BUILTIN_FILTERS), metrics, find_parameter_checks())
