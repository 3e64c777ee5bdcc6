"""Filters that are installed with the software of the nodes: they can be used and shown, and never change here."""

from __future__ import annotations

from sluice_controller.catalog.backend import Backend
from sluice_controller.code.filters import PYTHON
from sluice_core.describe import FILTER, ActionInfo
from sluice_core.messages.uploads import Upload
from sluice_dsl.catalogue.base import Catalogue
from sluice_filters.trial.native import declared_fields


def list_usable(catalogue: Catalogue) -> dict[str, ActionInfo]:
    """The filters that policies can set, installed and registered ones, by keyword."""
    return {word: one for word, one in catalogue.actions.items() if one.available and one.kind == FILTER}


def find_installed(backend: Backend, keyword: str) -> Upload | None:
    """An installed filter in the shape of a registration without code; its revision is its version.

    None when there is none of this keyword, or one is registered under it.
    """
    contents = backend.policy_cache.contents()
    catalogue = backend.vocabulary(contents)
    info = list_usable(catalogue).get(keyword)
    if info is None or keyword in contents.uploads:
        return None
    return Upload(
        keyword,
        info.environment,
        PYTHON,
        getattr(catalogue.trials.get(keyword), "__name__", ""),
        "",
        0,
        revision=info.version,
        reverse=info.reversible,
        info=declared_fields(info),
        self_service=keyword in backend.config.self_service_words,
    )
