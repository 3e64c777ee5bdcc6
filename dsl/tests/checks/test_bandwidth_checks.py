"""Bandwidth and replication: accepted and refused objectives, and objectives beside existing ones."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sluice_core.errors import Conflict
from sluice_dsl.catalogue.vocabulary import MOST_BANDWIDTH, default_catalogue
from sluice_dsl.compile import ExistingPolicy, PolicyErrors, compile_text
from sluice_dsl.explain import explain
from sluice_dsl.syntax.keywords import quote
from sluice_dsl.syntax.units import write_value
from sluice_dsl.testing import make_catalogue

CATALOGUE = make_catalogue()
T = "FOR TENANT acme DO SET bandwidth WITH"
LOGS = "FOR CONTAINER acme/logs DO SET bandwidth WITH"


def compiled(text, *others):
    there = [ExistingPolicy(f"p{n}", compile_text(other, CATALOGUE)[0].plan) for n, other in enumerate(others, 1)]
    (found,) = compile_text(text, CATALOGUE, there)
    return found


def refused(text, *others):
    with pytest.raises(PolicyErrors) as caught:
        compiled(text, *others)
    return caught.value


def params(text):
    (action,) = compiled(text).plan.actions
    return action.params


ACCEPTED = [
    (f"{T} get_bw=30MBps", {"get_bw": 30e6}),
    (f"{T} get_bw=30", {"get_bw": 30e6}),
    (f"{T} get_bw=0.5", {"get_bw": 5e5}),
    (f"{T} put_bw='1.5 MiB/s' max_put_bw=2MiB/s", {"put_bw": 1.5 * 2**20, "max_put_bw": 2.0 * 2**20}),
    (f"{T} get_bw=1TBps", {"get_bw": 1e12}),
    (f"{T} get_bw=1Bps", {"get_bw": 1.0}),
    (f"{T} get_bw=10MBps max_get_bw=10MBps", {"get_bw": 10e6, "max_get_bw": 10e6}),
    (f"{T} put_bw=30MBps max_get_bw=10MBps", {"put_bw": 30e6, "max_get_bw": 10e6}),
    (f"{T} node_get_bw=2", {"node_get_bw": 2e6}),
    (f"{T} get_bw=1 storage_policy=gold class=Silver", {"get_bw": 1e6, "storage_policy": "gold", "class": "silver"}),
    (f"{T} get_bw=1 storage_policy=0 class=7", {"get_bw": 1e6, "storage_policy": "0", "class": "7"}),
    ("FOR ALL TENANTS DO SET bandwidth get_bw=5MBps", {"get_bw": 5e6}),
    ("FOR ALL CONTAINERS DO SET bandwidth max_put_bw=5MBps", {"max_put_bw": 5e6}),
    ("FOR GROUP archive DO SET bandwidth get_bw=5MBps", {"get_bw": 5e6}),
    ("FOR CLUSTER DO SET replication WITH max_bw=5MBps", {"max_bw": 5e6}),
    ("FOR CLUSTER DO SET replication WITH max_bw=5", {"max_bw": 5e6}),
    ("FOR TENANT acme WHEN PUTS_SEC > 3 DO SET bandwidth max_put_bw=5MBps TRANSIENT", {"max_put_bw": 5e6}),
    ("FOR CLUSTER WHEN GETS_SEC > 3 DO SET replication max_bw=5MBps TRANSIENT", {"max_bw": 5e6}),
    ("FOR TENANT acme DO DELETE bandwidth", {}),
    ("FOR CONTAINER acme/logs WHEN GETS_SEC > 9 DO DELETE bandwidth TRANSIENT", {}),
    ("FOR CLUSTER DO DELETE replication", {}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ACCEPTED)
def test_a_promise_compiles_to_bytes_per_second_and_prints_back(text, expected):
    assert params(text) == expected
    assert compiled(compiled(text).text).plan == compiled(text).plan


def test_a_cluster_without_anything_installed_has_both_words():
    for text in (f"{T} get_bw=30MBps", "FOR CLUSTER DO SET replication WITH max_bw=5MBps"):
        assert compile_text(text, default_catalogue())


LIMITS = "expected 1 B/s to 1 TB/s, got"
# sentence, the words that the carets mark, part of the message, near miss, code
REFUSED = [
    (f"{T} get_bw=0", "0", f"parameter `get_bw` of `bandwidth`: {LIMITS} `0`", "", "value"),
    (f"{T} get_bw=0.5Bps", "0.5Bps", f"{LIMITS} `0.5Bps`", "", "value"),
    (f"{T} get_bw=-30MBps", "-30MBps", "got the negative `-30MBps`", "", "value"),
    (f"{T} get_bw=-1e-40", "-1e-40", "got the negative `-1e-40`", "", "value"),
    (f"{T} get_bw=NaN", "NaN", "expected a rate such as 30MBps or 1MiB/s, got `NaN`", "", "value"),
    (f"{T} get_bw=inf", "inf", "expected a rate such as 30MBps or 1MiB/s, got `inf`", "", "value"),
    (f"{T} put_bw=1e18", "1e18", f"{LIMITS} `1e18`", "", "value"),
    (f"{T} put_bw=1e18Bps", "1e18Bps", f"{LIMITS} `1e18Bps`", "", "value"),
    (f"{T} put_bw=1000000000000000000", "1" + 18 * "0", f"{LIMITS} `1{18 * '0'}`", "", "value"),
    (f"{T} put_bw=1e999", "1e999", f"{LIMITS} `1e999`", "", "value"),
    (f"{T} put_bw=1.1TBps", "1.1TBps", f"{LIMITS} `1.1TBps`", "", "value"),
    (f"{T} get_bw=30Mbps", "30Mbps", "expected a rate", "30MBps", "value"),
    (f"{T} get_bw=30MB", "30MB", "expected a rate", "30MBps", "value"),
    (f"{T} get_bw=30parsecs", "30parsecs", "expected a rate", "", "value"),
    (f"{T} get_bw=fast", "fast", "expected a rate", "", "value"),
    (f"{T} get_bw=''", "''", "expected a rate", "", "value"),
    ("FOR CLUSTER DO SET replication max_bw=0", "0", f"parameter `max_bw` of `replication`: {LIMITS} `0`", "", "value"),
    (f"{T} getbw=30MBps put_bw=1", "getbw", "`bandwidth` has no parameter `getbw`", "get_bw", "unknown"),
    (f"{T} class=gold", "bandwidth", "`bandwidth` needs at least one rate: expected `get_bw=…`, `put_bw", "",
     "value"),
    ("FOR acme DO SET bandwidth", "bandwidth", "`bandwidth` needs at least one rate", "", "value"),
    (f"{T} get_bw=1MBps class=golt", "golt", "expected one of gold, silver, bronze, 1, 2,", "gold", "value"),
    (f"{T} get_bw=1MBps class=0", "0", "expected one of gold, silver, bronze, 1, 2,", "", "value"),
    (f"{T} get_bw=1MBps class=8", "8", "expected one of gold, silver, bronze, 1, 2,", "", "value"),
    (f"{T} get_bw=1MBps storage_policy=' '", "' '", "expected a storage policy's name or index, got an", "",
     "value"),
    (f"{T} get_bw=30MBps max_get_bw=10MBps", "10MBps",
     "`max_get_bw` is 10 MB/s, below the floor `get_bw` of 30 MB/s", "", "value"),
    (f"{T} max_put_bw=1KBps put_bw=30MBps", "1KBps", "`max_put_bw` is 1 KB/s, below the floor `put_bw`", "", "value"),
    (f"{T} node_get_bw=30MBps max_get_bw=10MBps", "10MBps", "below the floor `node_get_bw` of 30 MB/s", "", "value"),
    ("FOR OBJECT a/b/c DO SET bandwidth get_bw=1MBps", "bandwidth",
     "`bandwidth` is for tenants, containers and volumes, not for objects: expected `CONTAINER …`", "",
     "meaning"),
    ("FOR VOLUME data1 DO SET bandwidth get_bw=1MBps class=gold", "gold",
     "`class` of `bandwidth` is about objects, and the target is a volume", "", "value"),
    ("FOR CLUSTER DO SET bandwidth get_bw=1MBps", "bandwidth",
     "not for the cluster: expected `ALL TENANTS`, which sets it for each of them", "", "meaning"),
    ("FOR GROUP videos DO SET bandwidth get_bw=1MBps", "bandwidth", "not for objects", "", "meaning"),
    ("FOR CLUSTER DO DELETE bandwidth", "bandwidth", "not for the cluster", "", "meaning"),
    ("FOR acme DO SET replication max_bw=5MBps", "replication",
     "`replication` limits the bytes of all tenants together, not those of one tenant: expected `FOR CLUSTER`",
     "", "meaning"),
    ("FOR CLUSTER DO SET replication", "replication", "`replication` needs parameter `max_bw`", "", "meaning"),
    ("FOR CLUSTER DO SET replication max_bw=5MBps ON PROXY", "PROXY",
     "`replication` does not run ON PROXY, expected `ON STORAGE_NODE`", "", "meaning"),
    ("FOR acme WHEN OBJECT_SIZE > 1MB DO SET bandwidth get_bw=1MBps", "OBJECT_SIZE",
     "`OBJECT_SIZE` asks about single requests, and `bandwidth` applies to all bytes of its target", "", "meaning"),
    ("FOR acme WHEN PUTS_SEC > 3 AND NOT (GETS_SEC > 1 OR METHOD = GET) DO SET noop, bandwidth get_bw=1MBps",
     "METHOD", "`METHOD` asks about single requests", "", "meaning"),
    ("FOR CLUSTER WHEN OBJECT_TYPE = DOCS DO SET replication max_bw=5MBps", "OBJECT_TYPE",
     "and `replication` applies to all bytes", "", "meaning"),
    (f"{T} get_bw=1MBps, bandwidth put_bw=1MBps", "bandwidth", "`bandwidth` stands twice", "", "meaning"),
    (f"{T} get_bw=1MBps storage_policy=A, DELETE bandwidth", "bandwidth", "`bandwidth` stands twice", "", "meaning"),
    (f"{T} get_bw=1MBps storage_policy=A, SET bandwidth put_bw=1MBps storage_policy=a", "bandwidth",
     "`bandwidth` stands twice", "", "meaning"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "marked", "message", "near_miss", "code"), REFUSED)
def test_a_promise_that_cannot_be_is_refused_with_one_sentence_that_says_why(text, marked, message, near_miss, code):
    (problem,) = refused(text).problems
    start = problem.column - 1
    assert text[start : start + problem.length] == marked
    assert message in problem.message
    assert (problem.near_miss, problem.code) == (near_miss, code)
    assert not problem.message.endswith(".")


WARNED = [
    (f"{T} get_bw=30", ["a bare number is MB/s here: `30` is 30 MB/s"]),
    (f"{T} get_bw=30MBps", []),
    ("FOR CLUSTER DO SET replication max_bw=5", ["a bare number is MB/s here: `5` is 5 MB/s"]),
    (f"{T} put_bw=3MBps max_put_bw=4MBps ON STORAGE_NODE",
     ["`put_bw` and `max_put_bw`: uploads are always held back at the proxies, never at the storage nodes"]),
    (f"{T} get_bw=3MBps put_bw=3MBps ON STORAGE_NODE",
     ["`put_bw`: uploads are always held back at the proxies, never at the storage nodes"]),
    (f"{T} get_bw=3MBps ON STORAGE_NODE", []),
    (f"{T} put_bw=3MBps ON PROXY", []),
    (f"{T} node_get_bw=3MBps", []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), WARNED)
def test_what_is_doubtful_about_a_promise_is_a_warning(text, expected):
    assert [one.message for one in compiled(text).warnings] == expected


def test_an_alias_brings_rates_as_if_they_stood_there():
    from sluice_dsl.catalogue.base import ActionAlias

    catalogue = make_catalogue(actions_by_alias={"tier1": ActionAlias("bandwidth", {"get_bw": "30"})})
    (found,) = compile_text("FOR acme DO SET tier1 max_get_bw=40MBps", catalogue)
    assert found.plan.actions[0].params == {"get_bw": 30e6, "max_get_bw": 40e6}
    with pytest.raises(PolicyErrors) as caught:
        compile_text("FOR acme DO SET tier1 max_get_bw=4MBps", catalogue)
    assert "below the floor" in caught.value.problems[0].message


# Beside other policies


@pytest.mark.parametrize(
    "text",
    [f"{T} get_bw=1MBps", f"{T} put_bw=1MBps", "FOR acme DO SET noop, bandwidth max_get_bw=9MBps"],
)
def test_two_static_policies_may_not_promise_bandwidth_to_one_target(text):
    caught = refused(text, f"{T} get_bw=30MBps")
    assert isinstance(caught, Conflict)
    (problem,) = caught.problems
    assert problem.message.startswith("policy `p1` sets `bandwidth` for tenant `acme` already")


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (f"{T} get_bw=1MBps storage_policy=gold", f"{T} get_bw=2MBps storage_policy=silver"),
        (f"{T} get_bw=1MBps storage_policy=gold", f"{T} get_bw=2MBps"),
        (f"{T} get_bw=1MBps", f"{T} get_bw=2MBps storage_policy=silver"),
        ("FOR acme WHEN GETS_SEC > 3 DO SET bandwidth get_bw=9MBps", f"{T} get_bw=2MBps"),
        (f"{LOGS} get_bw=1MBps", f"{T} put_bw=2MBps"),
        (f"{LOGS} get_bw=1MBps", f"{T} get_bw=2MBps put_bw=2MBps"),
        (f"{LOGS} get_bw=1MBps", "FOR ALL TENANTS DO SET bandwidth put_bw=2MBps"),
        (f"{T} get_bw=1MBps", f"{LOGS} get_bw=2MBps"),
        (f"{LOGS} get_bw=1MBps", "FOR acme DO SET compression"),
        ("FOR CONTAINER acme/logs DO SET compression", f"{T} get_bw=2MBps"),
    ],
)
def test_promises_that_leave_each_other_alone_stand_beside_each_other_without_a_word(text, other):
    assert compiled(text, other).warnings == ()


def test_one_storage_policy_is_the_same_in_any_case_and_a_delete_is_of_all_of_them():
    assert isinstance(
        refused(f"{T} get_bw=1MBps storage_policy=GOLD", f"{T} put_bw=2MBps storage_policy=gold"), Conflict
    )
    (warning,) = compiled("FOR acme DO DELETE bandwidth", f"{T} get_bw=2MBps storage_policy=gold").warnings
    assert warning.message == "policy `p1` sets `bandwidth` for the same target; this DELETE, being newer, wins"


def test_a_delete_for_a_container_says_that_it_stays_within_what_its_tenant_is_promised():
    text = "FOR CONTAINER acme/logs DO DELETE bandwidth"
    (warning,) = compiled(text, f"{T} get_bw=2MBps").warnings
    assert warning.message == (
        "what policy `p1` sets for tenant `acme` stays: this ends objectives of containers, whose bytes then"
        " count for their tenant"
    )
    assert compiled(text, "FOR ALL CONTAINERS DO SET bandwidth get_bw=2MBps").warnings == ()
    assert compiled("FOR acme DO DELETE bandwidth", "FOR ALL TENANTS DO SET bandwidth get_bw=2MBps").warnings == ()


def test_one_sentence_may_promise_under_two_storage_policies():
    text = f"{T} get_bw=3MBps storage_policy=gold, SET bandwidth WITH get_bw=1MBps storage_policy=silver"
    found = compiled(text)
    assert [one.params["storage_policy"] for one in found.plan.actions] == ["gold", "silver"]
    (problem,) = refused(text, f"{T} put_bw=1MBps storage_policy=silver").problems
    assert problem.column == text.rindex("bandwidth") + 1


def test_only_one_policy_caps_replication():
    cap = "FOR CLUSTER DO SET replication WITH max_bw=5MBps"
    assert isinstance(refused(cap, cap), Conflict)


# In plain words


EXPLAINED = [
    (f"{T} get_bw=30", "with get_bw=30 MB/s, held back at the proxies; stays until"),
    (f"{T} get_bw=30MBps ON STORAGE_NODE", "held back at the storage nodes; stays until"),
    (f"{T} get_bw=30MBps put_bw=1MBps ON STORAGE_NODE", "held back at the storage nodes, uploads at the proxies;"),
    (f"{T} put_bw=30MBps ON STORAGE_NODE", "held back at the proxies;"),
    (
        f"{T} get_bw=30MBps",
        "target: tenant `acme` (account path `AUTH_acme`), except where a narrower policy has the",
    ),
    (f"{T} get_bw=30MBps", "fires: always\n"),
    (f"{LOGS} get_bw=30MBps", "target: container `acme/logs` (account path `AUTH_acme/logs`)\n"),
    ("FOR CLUSTER DO SET replication max_bw=5MBps", "with max_bw=5 MB/s, held back at the storage nodes;"),
    ("FOR acme DO SET bandwidth get_bw=1MBps, noop", "for every request"),
]


@pytest.mark.parametrize(("text", "part"), EXPLAINED)
def test_explain_says_where_bytes_are_held_back_and_what_narrower_policies_do(text, part):
    assert part in explain(compiled(text), CATALOGUE)


# Any text at all

numbers = st.one_of(
    st.integers(-5, 10**20).map(str),
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.decimals(allow_nan=True, allow_infinity=True).map(str),
    st.sampled_from(["0", "-0", "1e18", "1e-9", "1E12", ".5", "5.", "+1", "0x10", "1_000", "٣", "½"]),
)
units = st.sampled_from(
    ["", "Bps", "kBps", "MBps", "MB/s", "GiB/s", "TBps", "TiB/sec", "Mbps", "MB", "m", "%", "s", " MBps"]
)
rates = st.one_of(st.builds("{}{}".format, numbers, units), st.text(max_size=8))
places = st.sampled_from([
    ("FOR acme DO SET bandwidth WITH ", "get_bw"), ("FOR ALL CONTAINERS DO SET bandwidth WITH ", "max_put_bw"),
    ("FOR acme DO SET bandwidth WITH ", "node_get_bw"), ("FOR CLUSTER DO SET replication WITH ", "max_bw"),
])  # fmt: skip


@given(places, rates)
@example(("FOR acme DO SET bandwidth WITH ", "get_bw"), "1e18")
def test_any_rate_is_positive_finite_and_within_the_limit_or_refused_with_one_problem(place, rate):
    sentence, name = place
    text = f"{sentence}{name}={quote(rate)}"
    try:
        (found,) = compile_text(text, CATALOGUE)
    except PolicyErrors as caught:
        (problem,) = caught.problems
        assert problem.code == "value"
        assert problem.message.startswith(f"parameter `{name}` of ")
        return
    (action,) = found.plan.actions
    value = action.params[name]
    assert isinstance(value, float)
    assert math.isfinite(value)
    assert 0 < value <= MOST_BANDWIDTH
    assert compile_text(found.text, CATALOGUE)[0].plan == found.plan


@given(st.floats(1.0, MOST_BANDWIDTH))
def test_any_rate_reads_back_as_it_is_printed(value):
    assert params(f"{T} get_bw={write_value(value, 'rate')}") == {"get_bw": value}
