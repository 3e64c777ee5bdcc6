"""The plans that sentences compile to."""

import pytest

from sluice_core.messages.policies import Target
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.catalogue.vocabulary import KNOWN_ACTIONS, TERMS
from sluice_dsl.compile import compile_text
from sluice_dsl.plan import LANGUAGE, Plan, assignment_for, static_assignments
from sluice_dsl.testing import make_catalogue

CATALOGUE = make_catalogue()


def plan_of(text, catalogue=CATALOGUE):
    (compiled,) = compile_text(text, catalogue)
    return compiled.plan


TARGETS = [
    ("acme", Target("tenant", "name", "AUTH_acme", "acme")),
    ("TENANT acme", Target("tenant", "name", "AUTH_acme", "acme")),
    ("TENANT AUTH_other", Target("tenant", "name", "AUTH_other")),
    ("T1", Target("tenant", "name", "T1")),
    ("CONTAINER acme/logs", Target("container", "name", "AUTH_acme/logs", "acme/logs")),
    ("CONTAINER AUTH_x/logs", Target("container", "name", "AUTH_x/logs")),
    ("'AUTH_x'", Target("tenant", "name", "AUTH_x")),
    ("CONTAINER 'acme/my logs'", Target("container", "name", "AUTH_acme/my logs", "acme/my logs")),
    ("C1", Target("container", "name", "AUTH_acme/logs", "C1")),
    ("CONTAINER C1", Target("container", "name", "AUTH_acme/logs", "C1")),
    ("TENANT LAB", Target("tenant", "name", "AUTH_lab", "LAB")),
    ("OBJECT acme/logs/a/b.txt", Target("object", "name", "AUTH_acme/logs/a/b.txt", "acme/logs/a/b.txt")),
    ("OBJECT acme/logs//x", Target("object", "name", "AUTH_acme/logs//x", "acme/logs//x")),
    ("OBJECT C1/a.txt", Target("object", "name", "AUTH_acme/logs/a.txt", "C1/a.txt")),
    ("gold", Target("tenant", "group", "gold")),
    ("GROUP archive", Target("container", "group", "archive")),
    ("ALL TENANTS", Target("tenant", "all")),
    ("ALL CONTAINERS", Target("container", "all")),
    ("ALL OBJECTS", Target("object", "all")),
    ("CLUSTER", Target("cluster")),
]


@pytest.mark.parametrize(("words", "target"), TARGETS)
def test_a_target_is_resolved_and_keeps_its_written_name(words, target):
    plan = plan_of(f"FOR {words} DO SET noop")
    assert plan.target == target
    assert plan.granularity == target.level


def test_a_default_tenant_completes_containers_and_objects():
    catalogue = make_catalogue(default_tenant="acme")
    assert plan_of("FOR CONTAINER pics DO SET noop", catalogue).target.name == "AUTH_acme/pics"
    assert plan_of("FOR OBJECT pics/a.jpg DO SET noop", catalogue).target.name == "AUTH_acme/pics/a.jpg"
    assert plan_of("FOR OBJECT beta/pics/a.jpg DO SET noop", catalogue).target.name == "AUTH_beta/pics/a.jpg"


CONDITIONS = [
    ("PUTS_SEC > 3", ["metric", "PUTS_SEC", ">", 3.0]),
    ("puts_sec = 3/s", ["metric", "PUTS_SEC", "==", 3.0]),
    ("THROUGHPUT < 10MBps", ["metric", "THROUGHPUT", "<", 10e6]),
    ("DELAY >= 500ms", ["metric", "LATENCY", ">=", 0.5]),
    ("RESPONSE_TIME_P50 >= 500ms", ["metric", "RESPONSE_TIME", ">=", 0.5]),
    ("RESPONSE_TIME_P95 > 1.5 s", ["metric", "RESPONSE_TIME_P95", ">", 1.5]),
    ("ERRORS > 5%", ["metric", "ERRORS", ">", 0.05]),
    ("STORED > 1GiB", ["metric", "STORED", ">", 1 << 30]),
    ("NOT PUTS_SEC > 3", ["metric", "PUTS_SEC", "<=", 3.0]),
    ("NOT NOT PUTS_SEC > 3", ["metric", "PUTS_SEC", ">", 3.0]),
    ("NOT PUTS_SEC != 3", ["metric", "PUTS_SEC", "==", 3.0]),
    ("OBJECT_SIZE < 512", ["size", "<", 512]),
    ("NOT OBJECT_SIZE < 10KiB", ["size", ">=", 10240]),
    ("OBJECT_SIZE != 0", ["size", "!=", 0]),
    ("OBJECT_TYPE = logs", ["type", ["log", "logs", "syslog", "journal"]]),
    ("OBJECT_TYPE = PDF", ["type", ["pdf"]]),
    ("OBJECT_TYPE = .tar", ["type", ["tar"]]),
    ("OBJECT_TYPE = text/plain", ["type", ["text/plain"]]),
    ("OBJECT_TYPE = 'image/*'", ["type", ["image/*"]]),
    ("OBJECT_TYPE != pdf", ["not", ["type", ["pdf"]]]),
    ("NOT OBJECT_TYPE != pdf", ["type", ["pdf"]]),
    ("OBJECT_TAG == Hot", ["tag", ["hot"]]),
    ("NOT OBJECT_TAG = hot", ["not", ["tag", ["hot"]]]),
    ("METHOD = put", ["method", ["PUT"]]),
    ("METHOD != PUT", ["not", ["method", ["PUT"]]]),
    (
        "NOT (PUTS_SEC > 3 AND (OBJECT_SIZE < 5 OR METHOD = GET))",
        ["or", ["metric", "PUTS_SEC", "<=", 3.0], ["and", ["size", ">=", 5], ["not", ["method", ["GET"]]]]],
    ),
    (
        "PUTS_SEC > 3 AND GETS_SEC > 4 AND PUTS_SEC > 3",
        ["and", ["metric", "PUTS_SEC", ">", 3.0], ["metric", "GETS_SEC", ">", 4.0]],
    ),
    (
        "PUTS_SEC > 1 OR GETS_SEC > 2 AND METHOD = GET",
        ["or", ["metric", "PUTS_SEC", ">", 1.0], ["and", ["metric", "GETS_SEC", ">", 2.0], ["method", ["GET"]]]],
    ),
]


@pytest.mark.parametrize(("words", "condition"), CONDITIONS)
def test_a_condition_compiles_to_its_negation_normal_form_in_base_units(words, condition):
    plan = plan_of(f"FOR acme WHEN {words} DO SET noop")
    assert plan.condition == condition
    assert plan.dynamic is ("metric" in str(condition))


def test_the_plan_names_its_metrics_once_in_order():
    plan = plan_of("FOR acme WHEN PUTS_SEC > 1 OR GETS_SEC > 2 OR PUTS_SEC < 0 SUSTAINED 2min DO SET noop")
    assert (plan.metrics, plan.sustained, plan.granularity) == (("GETS_SEC", "PUTS_SEC"), 120.0, "tenant")


def test_parameters_compile_to_typed_base_values_and_only_the_given_ones_are_stored():
    plan = plan_of(
        "FOR acme DO SET sampler WITH mode=GOOD share=20%, every=5min rate=30 MB/s keep=1kB count=-4 factor=2.5"
        " strict=yes tags='a, b' note='x y' ON STORAGE_NODE TRANSIENT"
    )
    (action,) = plan.actions
    assert action.params == {
        "mode": "Good", "share": 0.2, "every": 300.0, "rate": 30e6, "keep": 1000, "count": -4, "factor": 2.5,
        "strict": True, "tags": "a,b", "note": "x y",
    }  # fmt: skip
    assert (action.place, action.life, action.stage) == ("storage_node", "transient", 400)
    assert plan_of("FOR acme DO SET compression").actions[0].params == {}


def test_actions_take_kind_stage_place_and_protection_from_the_catalogue():
    plan = plan_of("FOR C1 DO SET compression, encryption ON STORAGE_NODE, DELETE noop, SET bandwidth get_bw=30MBps")
    assert [(one.verb, one.keyword, one.kind, one.place, one.stage, one.protective) for one in plan.actions] == [
        ("set", "compression", "filter", "proxy", 300, False),
        ("set", "encryption", "filter", "storage_node", 500, True),
        ("delete", "noop", "filter", "proxy", 100, False),
        ("set", "bandwidth", "bandwidth", "proxy", 500, False),
    ]
    assert plan_of("FOR CLUSTER DO SET replication max_bw=5MBps").actions[0].place == "storage_node"


def test_an_omitted_life_is_persistent_and_each_action_has_its_own():
    plan = plan_of("FOR acme WHEN PUTS_SEC > 1 DO SET noop, thumbnail TRANSIENT, compression PERSISTENT")
    assert [action.life for action in plan.actions] == ["persistent", "transient", "persistent"]


def test_a_plan_survives_its_journey_as_bytes():
    plan = plan_of(
        "FOR gold WHEN NOT (PUTS_SEC > 3 AND OBJECT_TYPE = DOCS) SUSTAINED 5s DO SET sampler WITH mode=fast share=1%"
    )
    assert Plan.decode(plan.encode()) == plan
    assert plan.language == LANGUAGE


def test_each_sentence_keeps_its_source_and_its_canonical_text():
    text = "# first\nfor  acme do set NOOP ;\n  FOR beta # why\n DO SET noop\n"
    compiled = compile_text(text, CATALOGUE)
    assert [one.source for one in compiled] == ["for  acme do set NOOP", "FOR beta # why\n DO SET noop"]
    assert [one.text for one in compiled] == ["FOR acme DO SET noop", "FOR beta DO SET noop"]
    for one in compiled:
        assert compile_text(one.text, CATALOGUE)[0].plan == one.plan


# Assignments


def test_a_static_plan_becomes_one_assignment_per_action():
    plan = plan_of("FOR C1 WHEN OBJECT_SIZE > 5 DO SET compression WITH level=3, encryption ON STORAGE_NODE")
    first, second = static_assignments("p7", plan, 1234)
    assert (first.id, first.policy, first.order, first.created) == ("p7.0", "p7", 0, 1234)
    assert (second.id, second.order, second.protective, second.place) == ("p7.1", 1, True, "storage_node")
    assert first.when == ["size", ">", 5]
    assert first.params == {"level": 3}
    assert first.path() == "AUTH_acme/logs"
    assert type(first).decode(first.encode()) == first


def test_a_dynamic_plan_has_no_static_assignments():
    with pytest.raises(ValueError, match="policy `p1` watches PUTS_SEC"):
        static_assignments("p1", plan_of("FOR acme WHEN PUTS_SEC > 1 DO SET noop"), 1)


def test_a_condition_that_never_holds_needs_no_assignment():
    assert static_assignments("p1", Plan(Target("cluster"), plan_of("FOR acme DO SET noop").actions, False), 1) == ()


def test_an_assignment_for_a_member_carries_it_and_keeps_the_rank_of_the_sentence():
    plan = plan_of("FOR gold WHEN PUTS_SEC > 1 DO SET noop")
    found = assignment_for("p1", plan, 0, 5, ["size", ">", 1], member="AUTH_acme")
    assert (found.id, found.member, found.path()) == ("p1.0@AUTH_acme", "AUTH_acme", "AUTH_acme")
    assert found.target.select == "group"
    assert assignment_for("p1", plan, 0, 5, True).id == "p1.0"


# Vocabulary


def test_known_words_cover_every_kind_without_a_filter_and_promises_are_available():
    of_objects = {info.kind for info in KNOWN_ACTIONS.values() if info.about == ("objects",)}
    assert of_objects == {"bandwidth", "replication", "motif", "namespace"}
    assert all(keyword == info.keyword for keyword, info in KNOWN_ACTIONS.items())
    assert {info.kind for info in KNOWN_ACTIONS.values() if info.available} == {"bandwidth", "replication"}


@pytest.mark.parametrize("term", TERMS)
def test_terms_compile_to_their_patterns(term):
    plan = plan_of(f"FOR t WHEN OBJECT_TYPE = {term.lower()} DO SET noop")
    assert plan.condition == ["type", list(TERMS[term])]


def test_an_empty_catalogue_knows_nothing():
    catalogue = Catalogue()
    assert (catalogue.metric("PUTS_SEC"), catalogue.action("noop"), catalogue.account("x")) == (None, None, "x")
