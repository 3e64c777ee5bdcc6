"""The vocabulary of this cluster: what is installed, and the words the language knows besides."""

from __future__ import annotations

from sluice_dsl.catalogue import Catalogue
from sluice_dsl.vocabulary import KNOWN_WORDS, TERMS
from sluice_filters import registry as filters
from sluice_metrics import registry as metrics


def build_catalogue(default_tenant: str = "") -> Catalogue:
    """What sentences are checked against; an installed filter takes the place of a known word."""
    installed = filters.load_filters()
    return Catalogue(
        actions={**KNOWN_WORDS, **filters.descriptions(installed)},
        metrics=metrics.descriptions(),
        terms=TERMS,
        default_tenant=default_tenant,
        trials=installed,
    )
