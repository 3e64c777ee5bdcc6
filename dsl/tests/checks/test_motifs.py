"""The checks of ``elasticity`` and ``motif``."""

import pytest

from sluice_core.describe import MOTIF, ActionInfo, Parameter
from sluice_dsl.catalogue.extensions import with_motifs
from sluice_dsl.compile import compile_text
from sluice_dsl.diagnostics import PolicyErrors
from sluice_dsl.explain import explain_plan
from sluice_dsl.testing import make_catalogue

URL = ActionInfo("url", MOTIF, "from the web", (
    Parameter("source", "str", "where", required=True), Parameter("max_age", "duration", "how old", minimum=0.0),
))  # fmt: skip
CATALOGUE = with_motifs(make_catalogue(), {"url": URL, "concat": ActionInfo("concat", MOTIF, "joined")})


def refused(text):
    with pytest.raises(PolicyErrors) as found:
        compile_text(text, CATALOGUE)
    return [(one.message, one.near_miss) for one in found.value.problems]


@pytest.mark.parametrize(
    ("target", "level"),
    [("acme", "tenant"), ("CONTAINER acme/c", "container"), ("GROUP gold", "tenant"), ("ALL CONTAINERS", "container"),
     ("CLUSTER", "cluster")],
)  # fmt: skip
def test_spaces_are_kept_by_containers_tenants_groups_all_and_the_cluster(target, level):
    text = f"FOR {target} DO SET elasticity WITH target_size=10GB policy=s4lru min_age=1h verify=expand"
    (compiled,) = compile_text(text, CATALOGUE)
    (action,) = compiled.plan.actions
    assert (compiled.plan.target.level, action.kind) == (level, "motif")
    assert action.params == {"target_size": 10**10, "policy": "s4lru", "min_age": 3600.0, "verify": "expand"}
    assert compile_text(compiled.text, CATALOGUE)[0].plan == compiled.plan
    assert explain_plan(compiled.plan, CATALOGUE)["fires"] == "always"


def test_a_part_of_a_wider_space_has_a_floor_and_a_weight_and_a_target_of_nothing_is_one():
    (part, nothing) = compile_text(
        "FOR CONTAINER acme/c DO SET elasticity WITH floor=1GB weight=3; FOR beta DO SET elasticity target_size=0",
        CATALOGUE,
    )
    assert part.plan.actions[0].params == {"floor": 10**9, "weight": 3}
    assert nothing.plan.actions[0].params == {"target_size": 0}


@pytest.mark.parametrize(
    ("text", "message", "miss"),
    [
        ("FOR acme DO SET elasticity target_size=-1",
         "parameter `target_size` of `elasticity`: expected a size such as 512, 64KiB or 10MB, got the negative `-1`",
         ""),
        ("FOR acme DO SET elasticity target_size=1000000000000000000",
         "parameter `target_size` of `elasticity`: expected 0 B to 100000 TB, got `1000000000000000000`", ""),
        ("FOR acme DO SET elasticity target_size=1GB policy=lrru",
         "parameter `policy` of `elasticity`: expected one of lru, lfu, fifo, clock, s4lru, random, got `lrru`, "
         "did you mean `lru`", "lru"),
        ("FOR acme DO SET elasticity target_size=1GB ON STORAGE_NODE",
         "`elasticity` is done by the daemons `sluice-motifs`, at no place in Swift: expected no ON", ""),
        ("FOR OBJECT acme/c/o DO SET elasticity target_size=1GB",
         "`elasticity` is kept by containers, tenants and the cluster, not by single objects: expected `CONTAINER …`",
         ""),
        ("FOR acme DO SET elasticity",
         "`elasticity`: expected `target_size=…`, or `floor=…` or `weight=…` for a part of a wider space", ""),
        ("FOR CONTAINER acme/c DO SET elasticity target_size=1GB floor=1MB",
         "`elasticity`: `target_size` describes a space and `floor` a part of a wider one, expected one of them",
         ""),
        ("FOR acme WHEN OBJECT_SIZE > 1MB DO SET elasticity target_size=1GB",
         "`OBJECT_SIZE` asks about single requests, and `elasticity` applies to all objects of its target: expected "
         "metrics alone", ""),
        ("FOR acme DO SET motif WITH template=ulr source=a",
         "parameter `template` of `motif`: expected one of concat, url, got `ulr`, did you mean `url`", "url"),
        ("FOR acme DO SET motif WITH template=url sauce=a source=b",
         "`motif` has no parameter `sauce`, did you mean `source`", "source"),
        ("FOR acme DO SET motif WITH template=url", "`motif` needs parameter `source`: expected `WITH source=…`", ""),
        ("FOR acme DO SET motif", "`motif` needs parameter `template`: expected `WITH template=…`", ""),
    ],
)  # fmt: skip
def test_nonsense_is_refused_with_what_was_expected(text, message, miss):
    assert refused(text) == [(message, miss)]


def test_a_motif_is_attached_by_a_sentence_with_the_parameters_of_its_template():
    text = "FOR CONTAINER acme/c WHEN OBJECT_TYPE = IMAGES DO SET motif WITH template=url source=meta:origin max_age=1h"
    (compiled,) = compile_text(text, CATALOGUE)
    assert compiled.plan.actions[0].params == {"template": "url", "source": "meta:origin", "max_age": 3600.0}
    assert compile_text(compiled.text, CATALOGUE)[0].plan == compiled.plan


def test_what_a_container_attaches_drops_nothing_of_its_tenant():
    first = "FOR acme DO SET elasticity target_size=1GB; FOR CONTAINER acme/c DO SET motif template=concat"
    assert [one.warnings for one in compile_text(first, CATALOGUE)] == [(), ()]


def test_a_target_may_change_with_what_is_free():
    text = "FOR CONTAINER acme/c WHEN FREE_SPACE < 20% DO SET elasticity WITH target_size=20GB TRANSIENT"
    (compiled,) = compile_text(text, CATALOGUE)
    assert compiled.plan.condition == ["metric", "FREE_SPACE", "<", 0.2]
    assert compiled.plan.granularity == "container"
