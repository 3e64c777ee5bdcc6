import pytest

from sluice_dashboard.volumes.tiers import claims_text, pool_row, promise_text, tier_row


def tier(**changes):
    known = {"name": "gold", "resiliency": "", "bandwidth": None, "iops": None, "fabric": "", "pools": []}
    return {**known, **changes}


@pytest.mark.parametrize(
    ("promises", "text"),
    [
        ({}, "nothing"),
        ({"resiliency": "none"}, "not resilient"),
        ({"resiliency": "1"}, "1 replica"),
        ({"bandwidth": 5e7, "fabric": "rbd"}, "50 MB/s, rbd"),
        ({"resiliency": "3", "iops": 900.0}, "3 replicas, 900 operations per second"),
    ],
)
def test_what_a_tier_promises_is_said(promises, text):
    assert promise_text(tier(**promises)) == text


def test_a_pool_that_does_not_know_its_size_is_not_the_freest():
    pools = [{"name": "a", "free": None}, {"name": "b", "free": 5.0}, {"name": "c", "free": 7.0}]
    assert tier_row(tier(pools=pools)).most_free == 7.0
    assert tier_row(tier(pools=pools[:1])).most_free is None


@pytest.mark.parametrize(
    ("total", "free", "used", "text"),
    [
        (2e12, 5e11, 75, "500 GB of 2 TB"),
        (0.0, 0.0, None, "0 B of 0 B"),
        (None, None, None, "– of –"),
    ],
)
def test_how_full_a_pool_is_is_known_where_it_says_so(total, free, used, text):
    row = pool_row({"name": "p", "total": total, "free": free, "capabilities": {}, "measured": None})
    assert (row.used, row.free_text, row.measured) == (used, text, "")


def test_what_a_pool_claims_has_its_unit():
    claims = {"resiliency": "none", "bandwidth": "400", "iops": "900"}
    assert claims_text(claims) == "bandwidth 400 MB/s, iops 900 /s, resiliency none"
