"""The language's copy of the descriptions of built-in filters and templates of motifs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluice_dsl.catalogue.builtin_words import BUILTIN_FILTERS, BUILTIN_TEMPLATES
from sluice_filters.registry import BUILT_IN
from sluice_motifs.runtime_calls import described_templates
from sluice_motifs.templates.registry import BUILT_IN as TEMPLATES
from sluice_sandbox.storlets.invocation import StorletInvocation

INSTALLED = {one.info.keyword: one.info for one in BUILT_IN} | {
    StorletInvocation.info.keyword: replace(StorletInvocation.info, available=False)
}
COPIED = {info.keyword: info for info in BUILTIN_FILTERS}


def test_the_language_knows_every_shipped_filter_and_no_other():
    assert sorted(COPIED) == sorted(INSTALLED)


@pytest.mark.parametrize("keyword", sorted(INSTALLED))
def test_the_copy_says_what_the_filter_says(keyword):
    assert COPIED[keyword] == INSTALLED[keyword]


def test_they_stand_in_the_order_of_their_stages():
    assert [info.stage for info in BUILTIN_FILTERS] == sorted(info.stage for info in BUILTIN_FILTERS)


def test_the_copies_of_templates_are_what_daemons_announce():
    announced = described_templates({one.info.keyword: one for one in TEMPLATES})
    assert list(BUILTIN_TEMPLATES) == [one.info for one in announced]
