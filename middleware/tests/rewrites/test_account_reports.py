"""A list of accounts is complete when every device of the account ring was read since the request."""

import pytest

from sluice_core.messages.nodes import NodeReport
from sluice_rewrites import accounts
from sluice_rewrites.accounts import (
    PATIENCE,
    AccountReport,
    add_accounts,
    close_request,
    new_request,
    open_request,
    open_requests,
    read_collection,
    write_reading,
    write_report,
)

RING = ("10.0.0.1:6202/sdb", "10.0.0.1:6202/sdc", "10.0.0.2:6202/sdb")
FIRST = AccountReport("n1", ("r",), RING, RING[:2])
SECOND = AccountReport("n2", ("q", "r"), RING, RING[2:])


@pytest.fixture
def run(store):
    return lambda operation, *given: store.run(operation(store.keys, *given))


@pytest.fixture
def asked(run, monkeypatch):
    """An open request, with no time to wait."""
    monkeypatch.setattr(accounts, "PATIENCE", 0.0)
    run(open_request, "r")


def test_a_list_is_complete_when_all_devices_were_read(run, asked):
    run(add_accounts, ["AUTH_a", "AUTH_b"])
    assert not run(read_collection, "r").is_complete
    run(write_report, FIRST)
    found = run(read_collection, "r")
    assert (found.is_complete, found.missing, found.progress) == (False, RING[2:], "collecting accounts (1 of 2 nodes)")
    run(write_report, SECOND)
    found = run(read_collection, "r")
    assert (found.is_complete, found.problem, found.accounts) == (True, "", 2)


def test_what_was_read_before_the_request_does_not_count(run, asked):
    run(write_report, FIRST)
    run(write_report, AccountReport("n2", ("q",), RING, RING[2:]))
    assert not run(read_collection, "r").is_complete


def test_a_device_that_one_node_alone_knows_is_missed(run, asked):
    """A ring is being copied to all nodes."""
    more = (*RING, "10.0.0.3:6202/sdb")
    run(write_report, FIRST)
    run(write_report, AccountReport("n2", ("r",), more, RING[2:]))
    found = run(read_collection, "r")
    assert not found.is_complete
    assert found.problem.startswith("no agent has read the accounts on sdb of 10.0.0.3:6202: set `storage_confs`")


def test_reports_without_a_ring_prove_nothing(run, asked):
    run(write_report, AccountReport("n1", ("r",), (), ()))
    assert not run(read_collection, "r").is_complete


def test_a_database_that_cannot_be_read_is_named(run, asked):
    run(write_report, FIRST)
    run(write_report, AccountReport("n2", ("r",), RING, RING[2:], ("/srv/x.db: malformed",)))
    found = run(read_collection, "r")
    assert not found.is_complete
    assert found.problem == "accounts cannot be read on `n2`: /srv/x.db: malformed"


def test_without_any_report_the_agents_are_named_that_could_make_one(run, asked, store):
    assert run(read_collection, "r").problem.startswith("no agent of a storage node has reported its accounts: set")
    store.report(NodeReport("n7", "h", 1, storage="ready"))
    store.report(NodeReport("proxy", "h", 1))
    assert "its accounts, of n7 neither: set `storage_confs`" in run(read_collection, "r").problem


def test_who_reads_is_waited_for_and_then_no_more(run, asked, monkeypatch):
    run(write_report, FIRST)
    monkeypatch.setattr(accounts, "PATIENCE", 5.0)
    run(write_reading, "n2")
    assert run(read_collection, "r").problem == ""
    monkeypatch.setattr(accounts, "PATIENCE", 0.0)
    assert "sdb of 10.0.0.2:6202" in run(read_collection, "r").problem


def test_who_has_not_begun_is_waited_for_at_first(run):
    run(open_request, "r")
    assert PATIENCE > 10
    assert run(read_collection, "r").problem == ""


def test_a_redis_that_lost_the_request_is_noticed(run, asked, store):
    run(write_report, FIRST)
    run(write_report, SECOND)
    store.client.delete(store.keys.account_requests)
    found = run(read_collection, "r")
    assert not found.is_complete
    assert found.problem == "redis has lost the request for the accounts; order it again"


def test_requests_are_open_until_they_are_closed_or_forgotten(run, store):
    names = {new_request() for _ in range(3)}
    assert len(names) == 3
    for name in names:
        run(open_request, name)
    store.client.zadd(store.keys.account_requests, {"old": 1.0})
    run(open_request, "r")
    assert run(open_requests) == names | {"r"}
    run(close_request, "r")
    assert run(open_requests) == names
