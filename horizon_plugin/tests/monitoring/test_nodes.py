"""The reports of nodes' agents, as they are shown."""

import pytest

from sluice_dashboard.monitoring.nodes import node_row, node_rows


def node(name, **changes):
    return {"node": name, "state": "ok", "refused": [], "plugins": {}, "sandbox": {}, **changes}


def test_nodes_that_are_not_well_come_first_then_those_that_refuse_something():
    refused = [{"assignment": "p1:0", "policy": "p1", "reason": "no room"}]
    nodes = [
        node("a"),
        node("b", refused=refused),
        node("c", state="stale_history"),
        node("d", state="away"),
        node("e", state="failed"),
    ]
    assert [one["node"] for one in node_rows(nodes)] == ["e", "d", "c", "b", "a"]


def test_plugins_that_were_left_out_and_broken_sandboxes_are_one_list():
    shown = node_row(node("a", plugins={"compression": "zstd is missing"}, sandbox={"seccomp": "off", "cgroups": "ok"}))
    assert shown["left_out"] == [("compression", "zstd is missing"), ("seccomp", "off")]


@pytest.mark.parametrize(
    ("state", "name", "level"),
    [("ok", "well", "active"), ("away", "does not report", "failed"), ("resting", "resting", "failed")],
)
def test_a_state_has_its_name_and_one_of_a_newer_api_its_own(state, name, level):
    shown = node_row(node("a", state=state))
    assert (shown["state_name"], shown["level"]) == (name, level)
