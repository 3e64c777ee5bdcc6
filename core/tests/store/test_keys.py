"""Every name that other processes read, printed and compared."""

from hypothesis import given
from hypothesis import strategies as st

from sluice_core.connections.exchanges import METRICS_EXCHANGE, metric_routing_key
from sluice_core.snapshot.keys import snapshot_index_key, snapshot_key
from sluice_core.store.keys import Keys

#: A change of one of these loses the stored data of a running cluster.
KNOWN = {
    "history": "sluice:history",
    "epoch": "sluice:epoch",
    "adopted": "sluice:adopted",
    "adoptions": "sluice:adoptions",
    "assignments": "sluice:assignments",
    "policies": "sluice:policies",
    "uploads": "sluice:uploads",
    "registry": "sluice:registry",
    "owners": "sluice:owners",
    "states": "sluice:states",
    "versions": "sluice:versions",
    "epochs": "sluice:epochs",
    "changes": "sluice:changes",
    "past": "sluice:past",
    "nodes": "sluice:nodes",
    "acks": "sluice:acks",
    "watched": "sluice:watched",
    "observed": "sluice:observed",
    "hosts": "sluice:hosts",
    "services": "sluice:services",
    "events": "sluice:events",
    "event_sources": "sluice:event_sources",
    "node_problems": "sluice:node_problems",
    "metric_series": "sluice:metric_series",
    "bandwidth": "sluice:bandwidth",
    "accounts": "sluice:accounts",
    "account_requests": "sluice:account_requests",
    "account_reports": "sluice:account_reports",
    "account_readers": "sluice:account_readers",
    "rewrites": "sluice:rewrites",
    "rewrite_orders": "sluice:rewrite_orders",
    "volumes": "sluice:volumes",
    "volume_operations": "sluice:volume_operations",
    "pools": "sluice:pools",
    "pool_calibrations": "sluice:pool_calibrations",
    "volume_report": "sluice:volume_report",
    "tiers": "sluice:tiers",
    "motif_daemons": "sluice:motif_daemons",
    "motif_daemons_seen": "sluice:motif_daemons_seen",
    "motif_calls": "sluice:motif_calls",
    "motif_operations": "sluice:motif_operations",
    "motif_operation_leases": "sluice:motif_operation_leases",
    "motif_operation_owners": "sluice:motif_operation_owners",
    "motif_activity": "sluice:motif_activity",
    "motif_spaces": "sluice:motif_spaces",
    "motif_space_reports": "sluice:motif_space_reports",
    "motif_leases": "sluice:motif_leases",
    "motif_items": "sluice:motif_items",
    "motif_scan": "sluice:motif_scan",
}


def all_keys(prefix="sluice"):
    """Name → key, of every key without parameters."""
    keys = Keys(prefix)
    return {name: getattr(keys, name) for name, member in vars(Keys).items() if hasattr(member, "reason")}


def test_all_keys_are_known_and_each_has_its_reason():
    assert all_keys() == KNOWN
    for name in KNOWN:
        assert vars(Keys)[name].reason, name
    print(*all_keys().values(), sep="\n")


def test_a_prefix_changes_every_key():
    assert not set(all_keys("a").values()) & set(all_keys("b").values())


def test_routing_keys_have_three_words_whatever_the_node_is_called():
    assert METRICS_EXCHANGE == "sluice.metrics"
    assert metric_routing_key("PUTS_SEC", "node1.example.org") == "metric.PUTS_SEC.node1_example_org"
    assert metric_routing_key("A.B", "n").count(".") == 2


paths = st.text(max_size=1500)


@given(st.sampled_from(["tenant", "container", "object"]), paths)
def test_snapshot_keys_fit_into_lmdb_and_tell_levels_apart(level, path):
    key = snapshot_key(level, path)
    assert 0 < len(key) <= 511
    others = {snapshot_key(other, path) for other in ("tenant", "container", "object") if other != level}
    assert key not in others | {snapshot_index_key(path)}


def test_names_that_are_no_unicode_have_a_key():
    assert snapshot_key("object", "a/c/\udcff") == b"o/a/c/\xff"


def test_long_names_are_hashed_apart():
    assert snapshot_key("object", "x" * 600) != snapshot_key("object", "x" * 601)
    assert snapshot_index_key("x" * 600) != snapshot_index_key("x" * 601)
