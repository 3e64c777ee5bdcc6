"""Policies on groups of tenants and containers on a real cluster, and the placement of an account's new containers."""

import itertools

import pytest

from sluice_aio.base.setup import EC21, GOLD
from sluice_aio.cluster.disks import stored_sizes
from sluice_core.messages.policies import Assignment, Target
from sluice_core.messages.registry import Group, Placement
from sluice_core.store.records import Draft

TEXT = b"".join(b"%d: a line that compresses\n" % n for n in range(5000))
ACCOUNT = "AUTH_test"


@pytest.fixture
def commit(store, eventually):
    """Commit a draft and wait until every node enforces it; all changes are reverted at the end."""
    puts, entries = set(), set()

    def enforce(**draft):
        epoch = store.commit(Draft("test", **draft)).epoch
        eventually(lambda: all(node.epoch >= epoch and node.state == "ok" for node in store.nodes()))
        puts.update(one.id for one in draft.get("puts", ()))
        entries.update(one.key for one in draft.get("entries", ()))

    yield enforce
    enforce(drops=tuple(puts), entry_drops=tuple(entries))


def compress(level, group):
    """The assignment of a sentence about a group."""
    return Assignment(f"{group}.0", group, "filter", "set", "compression", Target(level, "group", group), stage=300)


@pytest.fixture
def shrinks(cluster, swift):
    """Whether uploads to a container are stored compressed now."""

    names = (f"o{number}" for number in itertools.count())

    def ask(container):
        name = next(names)
        swift.request("PUT", container)
        assert swift.request("PUT", f"{container}/{name}", TEXT).status == 201
        assert swift.request("GET", f"{container}/{name}").body == TEXT
        sizes = stored_sizes(cluster.device_folders, f"{ACCOUNT}/{container}")[name]
        return max(sizes) < len(TEXT) / 2

    return ask


def test_a_tenant_that_joins_a_group_later_has_its_policies_until_it_leaves(store, commit, shrinks):
    commit(puts=(compress("tenant", "friends"),))
    assert not any(node.refused for node in store.nodes())
    assert not shrinks("joining")
    commit(entries=Group("friends", members=("AUTH_other", ACCOUNT)).entries())
    assert shrinks("joining")
    commit(entry_drops=(f"tenant_member/friends/{ACCOUNT}",))
    assert not shrinks("joining")


def test_a_policy_on_a_group_of_containers_holds_for_each_of_them(commit, shrinks):
    commit(entries=Group("logs", "container", (f"{ACCOUNT}/log1", f"{ACCOUNT}/log2")).entries())
    commit(puts=(compress("container", "logs"),))
    assert [shrinks(name) for name in ("log1", "log2", "log3")] == [True, True, False]


def test_a_group_decides_before_all_tenants_and_after_the_tenants_own(commit, shrinks):
    everybody = Assignment("all.0", "all", "filter", "set", "compression", Target("tenant", "all"), stage=300)
    exempt = Assignment("free.0", "free", "filter", "delete", "compression", Target("tenant", "group", "free"))
    own = Assignment("own.0", "own", "filter", "set", "compression", Target("tenant", "name", ACCOUNT), stage=300)
    commit(puts=(everybody, exempt))
    assert shrinks("ranked")
    commit(entries=Group("free", members=(ACCOUNT,)).entries())
    assert not shrinks("ranked")
    commit(puts=(own,))
    assert shrinks("ranked")


def test_new_containers_of_an_account_go_where_it_is_placed(commit, swift):
    def policy_of(container):
        return swift.request("HEAD", container).headers["x-storage-policy"]

    assert swift.request("PUT", "placed-before").status == 201
    commit(entries=(Placement(ACCOUNT, EC21).entry(),))
    assert swift.request("PUT", "placed").status == 201
    assert swift.request("PUT", "placed-not", X_Storage_Policy=GOLD).status == 201
    assert swift.request("PUT", "placed-before", X_Container_Meta_Seen="again").status == 202
    assert swift.request("PUT", "placed").status == 202
    found = [policy_of(name) for name in ("placed", "placed-not", "placed-before")]
    assert found == [EC21, GOLD, GOLD]
    assert swift.request("PUT", "placed/o", TEXT).status == 201
    assert swift.request("GET", "placed/o").body == TEXT
    commit(entry_drops=(f"placement/{ACCOUNT}",))
    assert swift.request("PUT", "placed-after").status == 201
    assert policy_of("placed-after") == GOLD
