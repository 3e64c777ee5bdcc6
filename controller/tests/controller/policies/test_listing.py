"""The list of policies: filtered, counted, in pages forwards and backwards."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_controller.policies.selectors import page_bounds
from sluice_core.messages.policies import PolicyState
from sluice_core.store.records import Draft


class At:
    """A policy at a position in the list."""

    def __init__(self, number):
        self.position = (number // 2, f"{number % 2}")


def marker(one):
    return f"{one.position[0]}-{one.position[1]}"


@given(count=st.integers(0, 30), limit=st.integers(1, 12), newest=st.booleans())
def test_pages_backwards_are_the_pages_forwards(count, limit, newest):
    chosen = [At(number) for number in range(count)]
    shown, pages, after = chosen[::-1] if newest else chosen, [], ""
    for start in range(0, max(count, 1), limit):
        first, last = page_bounds(chosen, limit, after, "", newest)
        page = chosen[first:last][::-1] if newest else chosen[first:last]
        assert page == shown[start : start + limit]
        pages.append(page)
        after = marker(page[-1]) if page else ""
    for earlier, later in itertools.pairwise(pages):
        first, last = page_bounds(chosen, limit, "", marker(later[0]), newest)
        assert (chosen[first:last][::-1] if newest else chosen[first:last]) == earlier


@pytest.fixture
def made(create):
    """Five policies, oldest first."""
    return [create(f"FOR TENANT AUTH_{number} WHEN PUTS_SEC > {number} DO SET noop")["id"] for number in range(5)]


def ids(page):
    return [one["id"] for one in page["policies"]]


def test_the_newest_come_first_when_that_is_asked_for(api, made):
    first = api.get("/policies?order=newest&limit=2").json()
    assert (ids(first), first["total"], first["previous_marker"]) == (made[:2:-1], 5, None)
    second = api.get(f"/policies?order=newest&limit=2&marker={first['next_marker']}").json()
    assert (ids(second), second["total"]) == ([made[2], made[1]], 5)
    back = api.get(f"/policies?order=newest&limit=2&before={second['previous_marker']}").json()
    assert back == first


def test_a_page_before_a_policy_that_was_deleted_is_still_found(api, made):
    second = api.get(f"/policies?limit=2&marker={api.get('/policies?limit=2').json()['next_marker']}").json()
    api.delete(f"/policies/{made[2]}")
    assert ids(api.get(f"/policies?limit=2&before={second['previous_marker']}").json()) == made[:2]


def test_a_page_behind_the_last_policy_is_empty(api, made):
    marker = f"{10**18}-x"
    page = api.get(f"/policies?marker={marker}").json()
    assert (ids(page), page["next_marker"], page["previous_marker"], page["total"]) == ([], None, None, 5)


@pytest.mark.parametrize("query", ["marker=1-a&before=1-a", "before=x", "order=random"])
def test_a_page_that_cannot_be_meant_is_refused(api, query):
    assert api.get(f"/policies?{query}").status_code == 400


def test_a_text_is_found_in_the_sentence_in_any_case(api, create):
    one = create("FOR TENANT AUTH_a WHEN PUTS_SEC > 3 DO SET compression WITH engine=zstd")["id"]
    other = create("for container AUTH_b/Größe do set noop")["id"]
    create("FOR TENANT AUTH_c DO SET noop")

    def found(text):
        page = api.get("/policies", {"text": text}).json()
        assert page["total"] == len(page["policies"])
        return ids(page)

    assert found("puts_sec") == [one]
    assert found("ENGINE=z") == [one]
    assert found("GRÖSSE") == [other]
    assert found("auth_b") == [other]
    assert found("encryption") == []


def test_the_total_counts_what_all_filters_select(api, backend, made):
    failed = PolicyState(made[1], "failed", reason="no")
    backend.store.commit(Draft("t", states=(failed, PolicyState(made[2], "failed"))))
    page = api.get("/policies?state=failed&limit=1").json()
    assert (ids(page), page["total"]) == ([made[1]], 2)
    page = api.get("/policies?state=failed&tenant=AUTH_2").json()
    assert (ids(page), page["total"]) == ([made[2]], 1)
    assert api.get("/policies?state=failed&text=> 4").json()["total"] == 0
