"""Missing rates of floors, in words."""

import pytest

from sluice_dashboard.bandwidth import listing


@pytest.fixture(autouse=True)
def untranslated(monkeypatch):
    """Without Horizon there is no catalogue of translations."""
    monkeypatch.setattr(listing, "gettext", str)
    monkeypatch.setattr(listing, "name_of", lambda names, word: {"GET": "downloads", "PUT": "uploads"}[word])


def flow(**changes):
    row = {
        "account": "AUTH_x",
        "label": "acme",
        "container": "",
        "method": "GET",
        "storage_policy": "",
        "policies": ["p1"],
    }
    return {**row, "floor": 30e6, "met": 22e6, "short": 8e6, "measured": 21e6, **changes}


def objective(**changes):
    row = {"account": "AUTH_x", "label": "acme", "name": "get_bw", "value": 30e6, "storage_policy": "", "policy": "p1"}
    return {**row, "infeasible": {"shortfall": 8e6}, **changes}


def test_a_sentence_says_who_is_promised_what_and_what_of_it_is_missing():
    (one,) = listing.shortfalls([flow(storage_policy="gold")], [])
    assert one.text == (
        "acme is promised 30 MB/s of downloads under the storage policy gold. "
        "The cluster can carry 22 MB/s of it now: 8 MB/s are missing. 21 MB/s are moved."
    )


def test_floors_that_are_met_are_not_spoken_of():
    assert listing.shortfalls([flow(short=0.0)], [objective(infeasible=None)]) == []


def test_the_largest_shortfall_comes_first_and_a_container_is_named_with_its_tenant():
    found = listing.shortfalls([flow(short=1e6), flow(container="logs", short=2e6)], [])
    assert [one.path for one in found] == ["AUTH_x/logs", "AUTH_x"]
    assert found[0].text.startswith("acme/logs is promised")


def test_an_objective_of_a_tenant_that_moves_nothing_is_spoken_of_too():
    (one,) = listing.shortfalls([], [objective(label="")])
    assert (
        one.text == "AUTH_x is promised 30 MB/s of downloads, of which nothing is used now. 8 MB/s of it are missing."
    )


def test_what_a_flow_says_its_objective_does_not_say_again():
    assert len(listing.shortfalls([flow()], [objective()])) == 1
    assert len(listing.shortfalls([flow()], [objective(name="put_bw")])) == 2


def test_a_ceiling_lacks_nothing():
    assert listing.shortfalls([], [objective(name="max_get_bw")]) == []
