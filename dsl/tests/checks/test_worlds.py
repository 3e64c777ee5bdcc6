"""Sentences about volumes: their targets, their parameters, and their effect on objects."""

import pytest

from sluice_core.errors import Conflict
from sluice_core.messages.policies import Target
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.compile import ExistingPolicy, PolicyErrors, compile_text
from sluice_dsl.explain import explain
from sluice_dsl.plan import static_assignments
from sluice_dsl.testing import make_catalogue

CATALOGUE = make_catalogue()


def compiled(text, catalogue=CATALOGUE, existing=()):
    (one,) = compile_text(text, catalogue, existing)
    return one


def plan_of(text):
    return compiled(text).plan


def warnings(text, existing=()):
    return [one.message for one in compiled(text, existing=existing).warnings]


DATA1 = Target("volume", "name", "AUTH_acme/id-1", "data1")
TARGETS = [
    ("VOLUME data1", DATA1),
    ("VOLUME acme/data1", Target("volume", "name", "AUTH_acme/id-1", "acme/data1")),
    ("VOLUME id-3", Target("volume", "name", "AUTH_beta/id-3", "id-3")),
    ("VOLUME acme/backup", Target("volume", "name", "AUTH_acme/id-2", "acme/backup")),
    ("VOLUME beta/id-3", Target("volume", "name", "AUTH_beta/id-3", "beta/id-3")),
    ("VOLUME AUTH_beta/id-3", Target("volume", "name", "AUTH_beta/id-3")),
    ("ALL VOLUMES", Target("volume", "all")),
    ("GROUP disks", Target("volume", "group", "disks")),
    ("disks", Target("volume", "group", "disks")),
]


@pytest.mark.parametrize(("words", "target"), TARGETS)
def test_a_volume_is_found_by_its_name_its_tenant_or_its_id(words, target):
    plan = plan_of(f"FOR {words} DO SET throttling WITH max_bw=3MBps")
    assert (plan.target, plan.granularity) == (target, "volume")


def test_an_alias_of_a_volume_stands_for_it_with_and_without_its_level():
    catalogue = make_catalogue(aliases={"D1": Target("volume", "name", "AUTH_acme/id-1")})
    for words in ("D1", "VOLUME D1"):
        found = compiled(f"FOR {words} DO SET nop", catalogue).plan.target
        assert found == Target("volume", "name", "AUTH_acme/id-1", "D1")


def test_the_sentence_of_the_paper_limits_bytes_and_operations():
    plan = plan_of("FOR VOLUME data1 DO SET throttling WITH max_bw=3MBps max_iops=3k")
    (made,) = static_assignments("p1", plan, 5)
    assert (made.kind, made.place, made.about, made.target) == ("throttle", "konnector", ("volumes",), DATA1)
    assert made.params == {"max_bw": 3e6, "max_iops": 3000.0}


def test_a_tier_is_asked_for_by_demands():
    (action,) = plan_of("FOR VOLUME data1 DO SET tier WITH bandwidth=50MBps resiliency=2 fabric=rbd").actions
    assert (action.kind, action.params) == ("tier", {"bandwidth": 50e6, "resiliency": "2", "fabric": "rbd"})


def test_a_limit_for_a_while_is_set_by_a_metric_of_the_volume():
    plan = plan_of("FOR ALL VOLUMES WHEN VOLUME_READ_IOPS > 3k DO SET throttling WITH read_iops=1k TRANSIENT")
    assert (plan.condition, plan.granularity) == (["metric", "VOLUME_READ_IOPS", ">", 3000.0], "volume")
    assert plan_of("FOR acme WHEN VOLUME_QUEUE > 5 DO SET nop").granularity == "tenant"


# sentence, the words that the carets mark, part of the message, near miss, code
REFUSED = [
    ("FOR VOLUME dta1 DO SET nop", "dta1", "there is no volume `dta1`, did you mean `data1`", "data1", "unknown"),
    ("FOR VOLUME acme/id-3 DO SET nop", "acme/id-3", "there is no volume `acme/id-3`", "", "unknown"),
    ("FOR VOLUME backup DO SET nop", "backup",
     "`backup` is the name of 2 volumes: expected one of `AUTH_acme/id-2` or `AUTH_beta/id-3`", "", "meaning"),
    ("FOR VOLUME data1 DO SET compression", "compression",
     "`compression` is about objects, and the target is a volume", "", "meaning"),
    ("FOR ALL VOLUMES DO DELETE caching", "caching", "is about objects, and the targets are volumes", "", "meaning"),
    ("FOR OBJECT acme/logs/x DO SET nop", "nop", "`nop` is about volumes, and the target is an object", "", "meaning"),
    ("FOR C1 DO SET throttling max_bw=1MBps", "throttling", "is about volumes, and the target is a container", "",
     "meaning"),
    ("FOR VOLUME data1 DO SET xor ON STORAGE_NODE", "STORAGE_NODE",
     "ON STORAGE_NODE is about objects, `xor` of volumes is done where they are used: expected no ON", "", "meaning"),
    ("FOR acme DO SET throttling max_bw=1MBps ON PROXY", "PROXY", "ON PROXY is about objects", "", "meaning"),
    ("FOR VOLUME data1 DO SET encryption TRANSIENT", "TRANSIENT",
     "`encryption` changes what a volume stores, which is decided when it is attached for the first time", "",
     "conflict"),
    ("FOR VOLUME data1 WHEN VOLUME_QUEUE > 3 DO SET bitrev", "VOLUME_QUEUE > 3",
     "attached for the first time: expected no metric in WHEN", "", "conflict"),
    ("FOR VOLUME data1 DO SET tier WITH name=gold TRANSIENT", "TRANSIENT", "to its former tier", "", "meaning"),
    ("FOR VOLUME data1 WHEN OBJECT_SIZE > 3 DO SET nop", "OBJECT_SIZE",
     "`OBJECT_SIZE` asks about requests for objects, and `nop` is about volumes here: expected metrics alone", "",
     "meaning"),
    ("FOR acme WHEN METHOD = GET DO SET throttling max_bw=1MBps", "METHOD", "asks about requests for objects", "",
     "meaning"),
    ("FOR VOLUME data1 DO SET xor EXISTING", "EXISTING", "EXISTING is about objects", "", "meaning"),
    ("FOR VOLUME data1 WHEN PUTS_SEC > 3 DO SET nop", "PUTS_SEC", "not per volume", "", "meaning"),
    ("FOR C1 WHEN VOLUME_QUEUE > 3 DO SET noop", "VOLUME_QUEUE", "not per container", "", "meaning"),
    ("FOR VOLUME data1 DO SET throttling", "throttling", "`throttling`: expected at least one of `max_bw=…`", "",
     "value"),
    ("FOR VOLUME data1 DO SET throttling max_iops=0", "0", "expected 1/s to", "", "value"),
    ("FOR VOLUME data1 DO SET tier WITH name=gold fabric=nbd", "tier", "`name` says the tier already", "", "value"),
    ("FOR VOLUME data1 DO SET tier WITH resiliency=two", "tier", "`resiliency` is `two`, expected none, raid,", "",
     "value"),
    ("FOR VOLUME data1 DO SET tier WITH fabric=rdb", "rdb", "expected one of nbd, iscsi", "rbd", "value"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "marked", "message", "near_miss", "code"), REFUSED)
def test_what_cannot_be_of_volumes_is_refused_with_the_reason(text, marked, message, near_miss, code):
    with pytest.raises(PolicyErrors) as refused:
        compile_text(text, CATALOGUE)
    (problem,) = refused.value.problems
    assert message in problem.message
    assert (problem.near_miss, problem.code) == (near_miss, code)
    assert problem.source[problem.column - 1 :][: problem.length] == marked
    assert isinstance(refused.value, Conflict) is (code == "conflict")


def test_encryption_of_a_tenant_covers_both_worlds_and_explain_says_so():
    one = compiled("FOR TENANT acme DO SET encryption")
    assert (one.plan.actions[0].about, one.warnings) == (("objects", "volumes"), ())
    assert "on the proxy, and of volumes that are attached for the first time from then on" in explain(one, CATALOGUE)
    assert "of volumes" not in explain(one, default_catalogue())


@pytest.mark.parametrize("condition", ["OBJECT_SIZE > 1MB", "PUTS_SEC > 3"])
def test_with_a_condition_encryption_of_a_tenant_holds_for_objects_alone(condition):
    text = f"FOR TENANT acme WHEN {condition} DO SET encryption"
    assert plan_of(text).actions[0].about == ("objects",)
    (warning,) = warnings(text)
    assert warning.endswith("with a condition it holds for objects alone")
    assert not compiled(text, default_catalogue()).warnings


def test_a_bare_rate_is_megabytes_and_warned_of():
    text = "FOR VOLUME data1 DO SET throttling WITH max_bw=3"
    assert plan_of(text).actions[0].params == {"max_bw": 3e6}
    assert warnings(text) == ["a bare number is MB/s here: `3` is 3 MB/s"]


def test_filters_of_a_volume_replace_those_of_its_tenant_for_volumes_and_no_filters_of_objects():
    tenants = [
        ExistingPolicy("p1", plan_of("FOR TENANT acme DO SET compression")),
        ExistingPolicy("p2", plan_of("FOR TENANT acme DO SET readahead")),
    ]
    assert warnings("FOR VOLUME data1 DO SET nop", tenants) == [
        "this replaces what policy `p2` does for tenant `acme`: drops `readahead`"
    ]
    assert warnings("FOR CONTAINER acme/logs DO SET noop", tenants) == [
        "this replaces what policy `p1` does for tenant `acme`: drops `compression`"
    ]


def test_a_stack_is_explained_in_the_order_of_writes():
    text = explain(compiled("FOR VOLUME data1 DO SET bitrev, xor WITH key=7"), CATALOGUE)
    assert "volume `data1` (account path `AUTH_acme/id-1`)" in text
    assert "fires: always" in text
    assert "sets `xor` (filter) with key=7 where a volume is used; stays" in text
    assert (
        "order: writes to a volume pass `bitrev` (where a volume is used, stage 750), then `xor` (where a volume is"
        " used, stage 800); reads go backwards" in text
    )
