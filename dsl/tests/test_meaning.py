"""The meaning of sentences (design section 5), line by line: from texts to the pipeline of one request.

Each case is a story: these policies, oldest first, this object and request, these metric values;
then these pipelines run.  Policies are compiled without each other, so that none is refused.
"""

import pytest

from sluice_core.messages.policies import ALL, GROUP
from sluice_core.messages.predicate import Facts, compile_predicate
from sluice_core.resolve import Candidates
from sluice_dsl.compile import compile_text
from sluice_dsl.plan import assignment_for, residual
from sluice_dsl.testing import make_catalogue

CATALOGUE = make_catalogue()
OBJECT = "AUTH_acme/logs/2024/a.pdf"
GROUPS = {"gold": {"AUTH_acme"}, "archive": {"AUTH_acme/logs"}, "videos": {"AUTH_acme/logs/2024/a.pdf"}}
DEPTHS = {"tenant": 1, "container": 2, "object": 3}


def ancestor(path, level):
    return "/".join(path.split("/", 2)[: DEPTHS[level]])


def concerns(target, path):
    if target.level == "cluster" or target.select == ALL:
        return True
    here = ancestor(path, target.level)
    return here in GROUPS[target.name] if target.select == GROUP else here == target.name


def in_force(texts, path, metrics):
    """The assignments that apply to ``path``; those of dynamic plans as their actors would set them."""
    for number, text in enumerate(texts):
        (compiled,) = compile_text(text, CATALOGUE)
        plan = compiled.plan
        if not concerns(plan.target, path):
            continue
        when = residual(plan.condition, metrics)
        for index in range(len(plan.actions)):
            if when is not False:
                yield assignment_for(f"p{number}", plan, index, number, when)


def pipelines(texts, path=OBJECT, metrics=None, facts=None):
    """Kind → keywords in running order, each with its level parameter if it has one."""
    found = Candidates(in_force(texts, path, metrics or {})).resolve(facts or Facts("PUT", path, 100, "text/plain"))
    return {
        kind: [one.keyword + (f"@{one.params['level']}" if "level" in one.params else "") for one in pipeline]
        for kind, pipeline in found.items()
    }


def filters(texts, **story):
    return pipelines(texts, **story).get("filter", [])


NARROW_TO_WIDE = [
    "OBJECT acme/logs/2024/a.pdf", "GROUP videos", "ALL OBJECTS",
    "CONTAINER acme/logs", "GROUP archive", "ALL CONTAINERS",
    "TENANT acme", "GROUP gold", "ALL TENANTS", "CLUSTER",
]  # fmt: skip


@pytest.mark.parametrize("winner", range(len(NARROW_TO_WIDE)))
@pytest.mark.parametrize("oldest_first", [True, False])
def test_the_narrowest_scope_wins_a_name_before_a_group_before_all(winner, oldest_first):
    """For every order of the policies' ages."""
    texts = [
        f"FOR {target} DO SET compression WITH level={number}"
        for number, target in enumerate(NARROW_TO_WIDE)
        if number >= winner
    ]
    assert filters(texts if oldest_first else texts[::-1]) == [f"compression@{winner}"]


NOOP = "FOR acme DO SET noop"
COMPRESS = "FOR acme DO SET compression"
ENCRYPT = "FOR acme DO SET encryption"
FLOOR = "FOR acme DO SET bandwidth WITH get_bw=30MBps"
LOGS = "FOR CONTAINER acme/logs"

# title of the case, policies from old to new, filters that run on a PUT of OBJECT
SCOPES = [
    ("nothing concerns another tenant's object", ["FOR beta DO SET noop", "FOR CONTAINER acme/x DO SET noop"], []),
    ("a tenant is no prefix of its name", ["FOR AUTH_ac DO SET noop"], []),
    ("all actions of one scope form one pipeline", [NOOP, COMPRESS], ["noop", "compression"]),
    ("one on a container replaces both", [NOOP, COMPRESS, f"{LOGS} DO SET thumbnail"], ["thumbnail"]),
    ("whatever their age", [f"{LOGS} DO SET thumbnail", NOOP, COMPRESS], ["thumbnail"]),
    ("two groups at one rank accumulate", ["FOR gold DO SET noop", "FOR GROUP gold DO SET compression"],
     ["noop", "compression"]),
    ("order is the stage, not the age", [ENCRYPT, COMPRESS, NOOP], ["noop", "compression", "encryption"]),
    ("order is the stage, not what was written", ["FOR acme DO SET compression, caching, noop"],
     ["caching", "noop", "compression"]),
    ("order is the stage, not the place", ["FOR acme DO SET encryption ON STORAGE_NODE", COMPRESS],
     ["compression", "encryption"]),
    ("protective filters are inherited", [ENCRYPT, f"{LOGS} DO SET noop"], ["noop", "encryption"]),
    ("from every wider scope", ["FOR CLUSTER DO SET encryption", COMPRESS, f"{LOGS} DO SET noop"],
     ["noop", "encryption"]),
    ("the others are not", ["FOR CLUSTER DO SET compression", NOOP], ["noop"]),
    ("a delete ends the inheritance", [ENCRYPT, f"{LOGS} DO DELETE encryption"], []),
    ("a delete beside a set", [ENCRYPT, COMPRESS, f"{LOGS} DO SET noop, DELETE encryption"], ["noop"]),
    ("a delete of something else does not", [ENCRYPT, f"{LOGS} DO DELETE compression"], ["encryption"]),
    ("a delete is an action, so its scope wins as a whole", [NOOP, COMPRESS, f"{LOGS} DO DELETE noop"], []),
    ("a delete that is wider does not reach in", ["FOR CLUSTER DO DELETE encryption", f"{LOGS} DO SET encryption"],
     ["encryption"]),
    ("a narrower set after a delete protects again",
     ["FOR CLUSTER DO SET encryption", "FOR acme DO DELETE encryption", f"{LOGS} DO SET encryption"], ["encryption"]),
    ("a delete between ends what comes from above",
     ["FOR CLUSTER DO SET encryption", "FOR acme DO DELETE encryption", f"{LOGS} DO SET noop"], ["noop"]),
    ("at one scope the newer wins: set", ["FOR acme DO DELETE noop", NOOP], ["noop"]),
    ("at one scope the newer wins: delete", [NOOP, "FOR acme DO DELETE noop"], []),
    ("at one scope the newer wins: parameters",
     ["FOR acme DO SET compression WITH level=1", "FOR acme DO SET compression WITH level=2"], ["compression@2"]),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "expected"), [case[1:] for case in SCOPES], ids=[case[0] for case in SCOPES])
def test_scope_and_order(texts, expected):
    assert filters(texts) == expected


def test_kinds_do_not_touch_each_other():
    """A container's compression does not remove its tenant's bandwidth floor."""
    assert pipelines([FLOOR, NOOP, f"{LOGS} DO SET compression"]) == {
        "bandwidth": ["bandwidth"],
        "filter": ["compression"],
    }
    assert pipelines([FLOOR, "FOR acme DO DELETE bandwidth"]) == {}
    assert pipelines([FLOOR, f"{LOGS} DO DELETE bandwidth"]) == {"bandwidth": ["bandwidth"]}
    kinds = pipelines(
        [
            "FOR acme DO SET noop, elasticity target_size=1GB, namespace, bandwidth get_bw=1MBps",
            "FOR CLUSTER DO SET replication max_bw=1GBps",
        ]
    )
    assert kinds == {kind: [word] for kind, word in [
        ("filter", "noop"), ("replication", "replication"), ("motif", "elasticity"), ("namespace", "namespace"),
        ("bandwidth", "bandwidth"),
    ]}  # fmt: skip


SIZE = f"{LOGS} WHEN OBJECT_SIZE < 512 DO SET noop"

# condition, request facts, whether it holds
REQUESTS = [
    ("OBJECT_SIZE<512", {"size": 511}, True),
    ("OBJECT_SIZE<512", {"size": 512}, False),
    ("OBJECT_SIZE<512", {"size": None}, False),
    ("NOT OBJECT_SIZE<512", {"size": None}, False),
    ("OBJECT_SIZE != 1", {"size": None}, False),
    ("OBJECT_SIZE<512 OR NOT OBJECT_SIZE<512", {"size": None}, False),
    ("OBJECT_SIZE<512 OR METHOD=PUT", {"size": None}, True),
    ("OBJECT_TYPE=DOCS", {"name": "c/a.PDF"}, True),
    ("OBJECT_TYPE=DOCS", {"name": "c/a", "content_type": "application/pdf; x=y"}, True),
    ("OBJECT_TYPE=DOCS", {"name": "a.pdf/b", "content_type": "text/plain"}, False),
    ("OBJECT_TYPE=DOCS", {"name": "c/a", "content_type": None}, False),
    ("OBJECT_TYPE != DOCS", {"name": "c/a", "content_type": None}, False),
    ("OBJECT_TYPE != DOCS", {"name": "c/a.txt", "content_type": "text/plain"}, True),
    ("OBJECT_TYPE = image/*", {"name": "c/a", "content_type": "image/png"}, True),
    ("OBJECT_TAG = hot", {"tags": frozenset({"hot", "new"})}, True),
    ("OBJECT_TAG = hot", {"tags": frozenset()}, False),
    ("OBJECT_TAG = hot", {"tags": None}, False),
    ("OBJECT_TAG != hot", {"tags": None}, False),
    ("METHOD = get", {"method": "GET"}, True),
    ("NOT METHOD = GET", {"method": "GET"}, False),
]


@pytest.mark.parametrize(("condition", "known", "holds"), REQUESTS)
def test_a_condition_on_the_request_holds_only_when_it_is_known_to(condition, known, holds):
    facts = Facts(**{"method": "PUT", "name": "c/a", "size": 100, "content_type": "text/plain", **known})
    assert filters([f"FOR acme WHEN {condition} DO SET noop"], facts=facts) == (["noop"] if holds else [])


def test_an_unknown_attribute_stays_unknown_under_not_in_whatever_form_it_is_written():
    for predicate in (["size", "<", 5], ["not", ["size", "<", 5]], ["not", ["not", ["size", ">=", 5]]]):
        assert compile_predicate(predicate)(Facts("PUT", "a")) is None


@pytest.mark.parametrize(("size", "expected"), [(511, ["noop"]), (512, ["compression"]), (None, ["compression"])])
def test_conditions_are_applied_before_scopes(size, expected):
    """A narrower policy whose condition is false does not hide the wider one."""
    assert filters([COMPRESS, SIZE], facts=Facts("PUT", "a", size)) == expected


def test_a_conditional_delete_ends_protection_only_while_it_holds():
    texts = [ENCRYPT, f"{LOGS} WHEN OBJECT_TYPE = IMAGES DO DELETE encryption"]
    assert filters(texts, facts=Facts("PUT", "a.png")) == []
    assert filters(texts, facts=Facts("PUT", "a.txt", None, "text/plain")) == ["encryption"]


MIXED = "FOR acme WHEN PUTS_SEC > 3 {} OBJECT_SIZE > 50 DO SET noop"

# connective, value of the metric, size of the object, whether it runs
BOTH_SORTS = [
    ("AND", 5.0, 100, True),
    ("AND", 5.0, 10, False),
    ("AND", 1.0, 100, False),
    ("AND", None, 100, False),
    ("AND", 5.0, None, False),
    ("OR", 5.0, 10, True),
    ("OR", 1.0, 100, True),
    ("OR", 1.0, 10, False),
    ("OR", None, 100, True),
    ("OR", None, None, False),
    ("OR", 5.0, None, True),
    ("AND NOT", 5.0, 10, True),
    ("AND NOT", 5.0, 100, False),
    ("AND NOT", 5.0, None, False),
    ("OR NOT", 1.0, 10, True),
    ("OR NOT", 1.0, None, False),
]


@pytest.mark.parametrize(("connective", "value", "size", "runs"), BOTH_SORTS)
def test_metrics_and_request_attributes_mix_under_and_or_and_not(connective, value, size, runs):
    found = filters([MIXED.format(connective)], metrics={"PUTS_SEC": value}, facts=Facts("PUT", "a", size))
    assert found == (["noop"] if runs else [])


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "=", "=="])
@pytest.mark.parametrize("prefix", ["", "NOT "])
def test_a_silent_metric_satisfies_no_comparison(op, prefix):
    text = f"FOR acme WHEN {prefix}PUTS_SEC {op} 3 DO SET noop"
    assert filters([text]) == []
    assert filters([text], metrics={"PUTS_SEC": None}) == []


def test_a_dynamic_policy_in_force_wins_as_the_newer_one_and_gives_way_when_it_ends():
    texts = ["FOR acme DO SET compression WITH level=1", "FOR acme WHEN PUTS_SEC > 3 DO SET compression WITH level=9"]
    assert filters(texts, metrics={"PUTS_SEC": 8.0}) == ["compression@9"]
    assert filters(texts, metrics={"PUTS_SEC": 1.0}) == ["compression@1"]
    assert filters(texts[::-1], metrics={"PUTS_SEC": 8.0}) == ["compression@1"]


def test_an_assignment_of_a_group_member_keeps_the_rank_of_the_group():
    (compiled,) = compile_text("FOR gold WHEN PUTS_SEC > 3 DO SET compression WITH level=1", CATALOGUE)
    member = assignment_for("group", compiled.plan, 0, 99, True, member="AUTH_acme")
    named = list(in_force(["FOR acme DO SET noop"], OBJECT, {}))
    everyone = list(in_force(["FOR ALL TENANTS DO SET compression WITH level=2"], OBJECT, {}))
    request = Facts("PUT", "a")
    assert [one.id for one in Candidates([member, *everyone]).resolve(request)["filter"]] == ["group.0@AUTH_acme"]
    assert [one.keyword for one in Candidates([member, *everyone, *named]).resolve(request)["filter"]] == ["noop"]
