from sluice_dashboard.code.details import filter_instances, summary

NODES = [
    {"node": "n1", "code": {"rot13": 2}},
    {"node": "n2", "code": {"rot13": 1}},
    {"node": "n3", "code": {}},
    {"node": "n4", "code": {"rot13": 2}},
    {"node": "konnector1", "code": {}},
]


def found(**rollout):
    """A filter at revision 2 as ``GET /filters/{keyword}`` shows it."""
    lists = {"total": 4, "nodes": 1, "refused": [], "waiting": [], "away": [], **rollout}
    return {"keyword": "rot13", "revision": 2, "sha256": "a" * 64, "rollout": lists}


def test_each_node_has_one_row_and_one_that_goes_on_says_with_what():
    refused = [{"node": "n2", "reason": "line 4", "revision": 1}]
    rows = filter_instances(found(refused=refused, waiting=["n3"], away=["n4"]), NODES)
    shown = [(one.where, one.state, one.revision, one.reason) for one in rows]
    assert shown == [
        ("n1", "running", 2, ""),
        ("n2", "refused", 1, "line 4"),
        ("n3", "waiting", 0, ""),
        ("n4", "away", 2, ""),
    ]
    assert summary(rows, 4) == "1 of 4 nodes have the newest revision, 1 refuses it"


def test_a_node_that_is_not_to_have_it_has_no_row():
    assert [one.where for one in filter_instances(found(), NODES)] == ["n1", "n4"]


def test_without_the_list_of_nodes_those_with_news_are_named():
    assert [one.where for one in filter_instances(found(waiting=["n3"]), [])] == ["n3"]
