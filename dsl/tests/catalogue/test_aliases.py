"""Aliases of filters and metrics: checked as the aliased words, printed as they were written."""

from __future__ import annotations

import pytest

from sluice_dsl.catalogue.base import ActionAlias, MetricAlias
from sluice_dsl.compile import ExistingPolicy, compile_text
from sluice_dsl.diagnostics import PolicyConflict, PolicyErrors
from sluice_dsl.testing import make_catalogue

CATALOGUE = make_catalogue(
    actions_by_alias={
        "fast": ActionAlias("sampler", {"mode": "fast", "share": "20%"}),
        "loose": ActionAlias("sampler", {"share": "10%"}),
        "broken": ActionAlias("sampler", {"mode": "quick"}),
    },
    metrics_by_alias={
        "GET_SEC_TENANT": MetricAlias("GETS_SEC", "tenant"),
        "READS": MetricAlias("GETS_SEC"),
    },
)


def compiled(text):
    (one,) = compile_text(text, CATALOGUE)
    return one


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("FOR acme DO SET fast", {"mode": "fast", "share": 0.2}),
        ("FOR acme DO SET FAST WITH share=50%", {"mode": "fast", "share": 0.5}),
        ("FOR acme DO SET loose mode=Good, count=3", {"mode": "Good", "share": 0.1, "count": 3}),
    ],
)
def test_a_filters_alias_brings_what_the_sentence_does_not_say(text, params):
    (action,) = compiled(text).plan.actions
    assert (action.keyword, action.params) == ("sampler", params)


@pytest.mark.parametrize(
    "text",
    [
        "FOR TENANT acme DO SET fast WITH share=50%, DELETE compression",
        "FOR TENANT acme WHEN GET_SEC_TENANT > 5 AND NOT READS < 3 DO SET loose WITH mode=fast TRANSIENT",
    ],
)
def test_the_canonical_text_keeps_aliases_and_reads_back(text):
    once = compiled(text)
    again = compiled(once.text)
    assert (again.text, again.plan) == (once.text, once.plan)
    assert "sampler" not in once.text


def test_delete_by_an_alias_takes_no_parameters():
    (action,) = compiled("FOR acme DO DELETE fast").plan.actions
    assert (action.verb, action.keyword, action.params) == ("delete", "sampler", {})


def test_a_fault_of_the_alias_is_shown_at_the_alias():
    with pytest.raises(PolicyErrors) as refused:
        compiled("FOR acme DO SET broken")
    (problem,) = refused.value.problems
    assert "quick" in problem.message
    assert problem.caret.endswith("^^^^^^")


def test_what_an_alias_lacks_is_asked_for():
    with pytest.raises(PolicyErrors, match="needs parameter `mode`"):
        compiled("FOR acme DO SET loose")


def test_an_alias_and_its_filter_are_the_same_to_each_other():
    with pytest.raises(PolicyErrors, match="twice"):
        compiled("FOR acme DO SET fast, SET sampler WITH mode=fast")
    other = ExistingPolicy("p", compiled("FOR acme DO SET fast").plan)
    with pytest.raises(PolicyConflict, match="`p` sets `sampler`"):
        compile_text("FOR acme DO SET loose WITH mode=fast", CATALOGUE, [other])


def test_a_metrics_alias_is_the_metric_for_targets_of_its_level():
    plan = compiled("FOR acme WHEN get_sec_tenant > 5 DO SET noop").plan
    assert (plan.metrics, plan.condition) == (("GETS_SEC",), ["metric", "GETS_SEC", ">", 5.0])
    assert compiled("FOR CLUSTER WHEN READS > 5 DO SET noop").plan.metrics == ("GETS_SEC",)
    with pytest.raises(PolicyErrors, match="`GET_SEC_TENANT` is `GETS_SEC` of a tenant"):
        compiled("FOR CLUSTER WHEN GET_SEC_TENANT > 5 DO SET noop")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("FOR acme DO SET fsat", "fast"),
        ("FOR acme WHEN GET_SEC_TENAT > 5 DO SET noop", "GET_SEC_TENANT"),
    ],
)
def test_aliases_are_near_misses_too(text, meant):
    with pytest.raises(PolicyErrors) as refused:
        compiled(text)
    assert refused.value.problems[0].near_miss == meant
