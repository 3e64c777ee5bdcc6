"""The catalogues of ``sluice-dsl``: a cluster with all filters and services of Sluice, or one described in a JSON file.

In the first one motif daemons and konnectors run, so that their actions, metrics and targets are available as in the
API of such a cluster.  Groups, aliases, uploaded code and registered words are known only from a file; a tenant, a
container, an object and a volume may have any name.

The keys of a file (``--catalogue``) are the fields of :class:`~sluice_dsl.catalogue.base.Catalogue`; a key that is
missing keeps the value of the offline catalogue.  ``actions`` and ``metrics`` are lists of objects whose members are
the fields of :class:`~sluice_core.describe.ActionInfo` and :class:`~sluice_core.describe.MetricInfo`.  ``volumes`` is a
list of objects with ``id``, ``account`` and ``name``; with it, even an empty one, the cluster has volumes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sluice_core.describe import ActionInfo, MetricInfo
from sluice_core.errors import CallerError
from sluice_core.messages.policies import NAME, VOLUME, Target
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.catalogue.builtin_words import BUILTIN_TEMPLATES, read_actions, read_metrics
from sluice_dsl.catalogue.extensions import VolumeIndex, with_motifs, with_volumes
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.diagnostics import closest_match
from sluice_volumes.messages import VolumeRecord


def offline_catalogue() -> Catalogue:
    """The catalogue against which sentences are checked without a cluster."""
    native = default_catalogue()
    whole = with_motifs(native, {one.keyword: one for one in BUILTIN_TEMPLATES})
    return with_volumes(whole, unknown_volumes(native.account), tuple)


def unknown_volumes(account_of: Callable[[str], str]) -> Callable[[str], list[Target]]:
    """Return a function that finds one volume for each name, for catalogues in which any name may be a volume's.

    :param account_of: the Swift account of a tenant's name
    """

    def find(written: str) -> list[Target]:
        tenant, slash, rest = written.partition("/")
        return [Target(VOLUME, NAME, f"{account_of(tenant)}/{rest}" if slash else written)]

    return find


def load_catalogue(path: str | Path) -> Catalogue:
    """The catalogue in the file at ``path``.

    :raises CallerError: when the file cannot be read or is not a catalogue
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CallerError(f"cannot read catalogue `{path}`: {error}") from error
    if not isinstance(data, dict):
        raise CallerError(f"catalogue `{path}`: expected an object")
    fields: dict[str, Any] = {}
    for name, value in data.items():
        if name not in _READERS:
            miss = closest_match(name, _READERS)
            raise CallerError(
                f"catalogue `{path}`: unknown key `{name}`" + (f", did you mean `{miss}`" if miss else "")
            )
        try:
            fields[name] = _READERS[name](value)
        except (TypeError, ValueError, AttributeError, KeyError, CallerError) as error:
            raise CallerError(f"catalogue `{path}`, `{name}`: {error}") from error
    volumes: VolumeIndex | None = fields.pop(_VOLUMES, None)
    shipped = offline_catalogue()
    described = fields.get("actions", shipped.actions)
    # a check belongs to Sluice's own filter: another filter of that keyword is checked by its description only
    others = {word for word, info in shipped.actions.items() if described.get(word) != info}
    trials = {word: one for word, one in shipped.trials.items() if word not in others}
    made = replace(shipped, trials=trials, **fields)
    if volumes is None:
        return replace(made, volumes=unknown_volumes(made.account))
    return with_volumes(made, lambda name: volumes.find(name, made.account), volumes.names)


def _actions(data: Any) -> dict[str, ActionInfo]:
    return {info.keyword.lower(): info for info in read_actions(data)}


def _metrics(data: Any) -> dict[str, MetricInfo]:
    return {info.name.upper(): info for info in read_metrics(data)}


def _terms(data: Any) -> dict[str, tuple[str, ...]]:
    return {name.upper(): tuple(patterns) for name, patterns in data.items()}


def _aliases(data: Any) -> dict[str, Target]:
    return {name: Target(**target) for name, target in data.items()}


def _words(data: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in data.items()}


def _paths(data: Any) -> frozenset[str]:
    if isinstance(data, str):
        raise TypeError("expected a list of `account/container`, or `*`")
    return frozenset(map(str, data))


def _volumes(data: Any) -> VolumeIndex:
    return VolumeIndex(VolumeRecord(project="", **one) for one in data)


_VOLUMES: Final = "volumes"
_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "actions": _actions,
    "metrics": _metrics,
    "terms": _terms,
    "aliases": _aliases,
    "groups": _words,
    "tenants": _words,
    "default_tenant": str,
    "levels": tuple,
    "erasure_coded": _paths,
    _VOLUMES: _volumes,
}
