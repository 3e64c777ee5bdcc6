"""A policy's observed values beside its condition, and the nodes that enforce it."""

import pytest

from sluice_dashboard.policies.detail import NodeRow, measured_targets, node_rows, readings, target_name

CONDITION = {
    "metric": "PUTS_SEC",
    "level": "tenant",
    "path": "AUTH_a",
    "operator": ">",
    "value": 3.0,
    "unit": "per_second",
}


def policy(observed, **condition):
    return {"conditions": [{**CONDITION, **condition}], "observed": observed}


@pytest.mark.parametrize(
    ("operator", "value", "holds"),
    [(">", 3.0, False), (">=", 3.0, True), ("<", 2.9, True), ("<=", 3.1, False), ("!=", 3.0, False), ("=", 3.0, True)],
)
def test_a_value_is_compared_as_the_condition_does(operator, value, holds):
    (one,) = readings(policy({"values": {"PUTS_SEC": value}, "members": {}}, operator=operator))
    assert one.holds is holds


@pytest.mark.parametrize(
    "observed", [None, {"values": {"PUTS_SEC": None}, "members": {}}, {"values": {}, "members": {}}]
)
def test_of_a_silent_metric_it_is_not_known_whether_the_condition_holds(observed):
    (one,) = readings(policy(observed))
    assert (one.value, one.holds) == (None, None)


def test_each_member_of_a_group_has_its_own_reading():
    observed = {"values": {}, "members": {"AUTH_b": {"PUTS_SEC": 1.0}, "AUTH_a": {"PUTS_SEC": 9.0}}}
    assert [(one.member, one.holds) for one in readings(policy(observed))] == [("AUTH_a", True), ("AUTH_b", False)]


def test_what_is_measured_of_one_target_is_drawn_of_it_and_of_a_group_for_the_first_members():
    members = {f"AUTH_{number}": {} for number in range(5)}
    assert measured_targets(policy(None), CONDITION, 3) == ["AUTH_a"]
    assert measured_targets(policy(None), {**CONDITION, "level": "cluster", "path": ""}, 3) == [""]
    group = policy({"values": {}, "members": members}, path="")
    assert measured_targets(group, group["conditions"][0], 3) == ["AUTH_0", "AUTH_1", "AUTH_2"]


def test_the_policys_own_target_is_called_as_in_its_sentence():
    own = {"target": {"name": "AUTH_0a", "label": "acme"}}
    assert [target_name(own, path) for path in ("AUTH_0a", "AUTH_0b", "")] == ["acme", "AUTH_0b", ""]
    assert target_name({"target": {"name": "AUTH_0a", "label": ""}}, "AUTH_0a") == "AUTH_0a"


def test_nodes_that_do_not_enforce_it_come_first_with_their_reason():
    enforced = {"refused": [{"node": "n3", "reason": "no room"}], "waiting": ["n2"], "away": ["n9"]}
    assert node_rows(enforced, ["n1", "n2", "n3"]) == [
        NodeRow("n3", "refused", "no room"),
        NodeRow("n2", "waiting"),
        NodeRow("n9", "away"),
        NodeRow("n1", "enforced"),
    ]
