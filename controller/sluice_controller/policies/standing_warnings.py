"""Warnings about a policy that stands: what new text like its own would be refused for."""

from __future__ import annotations

from typing import Any

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.policy_cache import CachedPolicy
from sluice_dsl.catalogue.aliases import expand_aliases
from sluice_dsl.checks.attributes import check_attributes
from sluice_dsl.diagnostics import WARNING, Reporter


def attribute_warnings(backend: Backend, cached: CachedPolicy) -> list[dict[str, Any]]:
    """What keeps the filters of a policy from acting: conditions on what they do not know in time.

    Positions are in its canonical text.
    """
    sentences = cached.sentences()
    if len(sentences) != 1:
        return []
    catalogue = backend.vocabulary(backend.policy_cache.contents())
    reporter = Reporter(cached.policy.text)
    check_attributes(expand_aliases(sentences[0], catalogue), cached.plan, catalogue, reporter, kept=True)
    return [one.to_data() for one in reporter.all(WARNING)]
