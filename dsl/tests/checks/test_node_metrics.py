"""Metrics of nodes in conditions: the highest of all nodes, or that of the node that AT names, for every target."""

import pytest

from sluice_core.describe import MetricInfo
from sluice_core.messages.policies import Target
from sluice_dsl.catalogue.base import MetricAlias
from sluice_dsl.compile import PolicyErrors, compile_text
from sluice_dsl.explain import explain
from sluice_dsl.plan import Plan, Reading, residual
from sluice_dsl.testing import make_catalogue

NODES = ("node-1.example", "node2")
CATALOGUE = make_catalogue(known_nodes=lambda: NODES)
HIGHEST, NAMED = Reading("NODE_CPU", "cluster"), Reading("NODE_CPU", "node", "node-1.example")


def compiled(words, target="acme"):
    (found,) = compile_text(f"FOR {target} WHEN {words} DO SET noop", CATALOGUE)
    return found


@pytest.mark.parametrize("target", ["CLUSTER", "TENANT acme", "CONTAINER C1", "OBJECT C1/x", "ALL TENANTS", "gold"])
def test_a_condition_on_nodes_alone_is_one_for_the_whole_target(target):
    plan = compiled("NODE_CPU > 80%", target).plan
    assert plan.condition == ["metric_at", "NODE_CPU", "cluster", "", ">", 0.8]
    assert (plan.metrics, plan.columns, plan.granularity) == (("NODE_CPU",), (HIGHEST,), "cluster")
    assert plan.dynamic
    assert Plan.decode(plan.encode()) == plan


def test_at_names_one_node_and_is_kept_in_the_canonical_text():
    found = compiled("node_cpu at node-1.example > 80%")
    assert found.text.startswith("FOR acme WHEN NODE_CPU AT node-1.example > 80% DO")
    assert found.plan.condition == ["metric_at", "NODE_CPU", "node", "node-1.example", ">", 0.8]
    assert found.plan.columns == (NAMED,)
    assert not found.warnings
    assert compile_text(found.text, CATALOGUE)[0].plan == found.plan


def test_metrics_of_the_target_and_of_nodes_mix_under_and_or_and_not():
    plan = compiled(
        "NOT (NODE_CPU > 80% OR NODE_CPU AT node-1.example > 50%) AND PUTS_SEC > 3 AND OBJECT_SIZE > 9"
    ).plan
    assert plan.granularity == "tenant"
    assert set(plan.columns) == {HIGHEST, NAMED, Reading("PUTS_SEC")}
    calm = {"NODE_CPU": 0.8, "NODE_CPU AT node-1.example": 0.5, "PUTS_SEC": 4.0}
    assert residual(plan.condition, calm) == ["size", ">", 9]
    for label in calm:
        assert residual(plan.condition, {**calm, label: None}) is False
    assert residual(plan.condition, {**calm, "NODE_CPU": 0.9}) is False


def test_a_metric_that_is_measured_at_the_target_and_at_nodes_is_the_targets_without_at():
    info = MetricInfo("LOAD", "count", "of a collector", ("tenant", "node"))
    catalogue = make_catalogue(metrics={"LOAD": info})
    (found,) = compile_text("FOR acme WHEN LOAD > 3 AND LOAD AT n1 > 5 DO SET noop", catalogue)
    assert found.plan.columns == (Reading("LOAD"), Reading("LOAD", "node", "n1"))
    (found,) = compile_text("FOR CLUSTER WHEN LOAD > 3 DO SET noop", catalogue)
    assert found.plan.columns == (Reading("LOAD", "cluster"),)


def test_an_alias_of_a_metric_at_nodes_stands_in_sentences_about_any_target():
    catalogue = make_catalogue(metrics_by_alias={"BUSY": MetricAlias("NODE_CPU", "node")})
    (found,) = compile_text("FOR acme WHEN BUSY AT n1 > 3% OR BUSY > 5% DO SET noop", catalogue)
    assert {one.path for one in found.plan.columns} == {"", "n1"}


def test_a_node_that_is_not_there_is_warned_of_with_the_near_miss():
    (warning,) = compiled("NODE_CPU AT node-2 > 80%").warnings
    assert warning.message == "there is no node `node-2` now, did you mean `node2`"
    assert warning.source[warning.column - 1 :].startswith("node-2 >")
    assert not compile_text("FOR acme WHEN NODE_CPU AT any > 1 DO SET noop", make_catalogue())[0].warnings


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "PUTS_SEC AT n1 > 3",
            "`PUTS_SEC` is measured per object, container, tenant and cluster, AT names a node, storage policy or pool",
        ),
        ("OBJECT_SIZE AT n1 > 3", "`OBJECT_SIZE` is a property of a request, AT is for metrics"),
        ("NODE_CPU AT '' > 3", "expected the name of a node, got an empty one"),
        ("STORAGE_POLICY_FREE AT '' > 3", "expected the name of a storage policy, got an empty one"),
        ("NODE_CPU AT > 3", "expected the name of a node or storage policy, found `>`"),
        ("NODE_CPU n1 > 3", "expected one of < <= > >= = == !=, found `n1`"),
    ],
)
def test_what_at_cannot_stand_for_is_refused(words, message):
    with pytest.raises(PolicyErrors) as refused:
        compiled(words)
    assert message in str(refused.value)


def test_at_is_no_reserved_word():
    (found,) = compile_text("FOR at WHEN NODE_CPU AT at > 1 DO SET sampler mode=fast note=at", CATALOGUE)
    assert found.plan.target == Target("tenant", "name", "at")
    assert found.plan.columns == (Reading("NODE_CPU", "node", "at"),)


def test_a_metric_of_storage_policies_is_read_like_that_of_nodes_and_nobody_knows_their_names():
    found = compiled("STORAGE_POLICY_FREE < 10% AND STORAGE_POLICY_FREE AT gold < 20%")
    assert not found.warnings
    least, named = Reading("STORAGE_POLICY_FREE", "cluster"), Reading("STORAGE_POLICY_FREE", "storage_policy", "gold")
    assert found.plan.columns == (least, named)


def test_what_is_watched_is_explained_by_where_it_is_read():
    words = explain(compiled("PUTS_SEC > 3 AND NODE_CPU AT node2 > 80%"), CATALOGUE)
    assert "watches NODE_CPU AT node2 (every 10 s) and PUTS_SEC (every 1 s) per tenant" in words
    assert "NODE_CPU AT node2 > 80%" in words
