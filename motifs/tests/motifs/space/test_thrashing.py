import tracemalloc

import pytest

from sluice_motifs.space.thrashing import GhostList, ThrashingGuard

WINDOW = 3200.0
#: Seconds.
BUDGET = 32.0


def guard(**given):
    return ThrashingGuard(WINDOW, BUDGET / WINDOW, now=0.0, **given)


def test_nothing_limits_contraction_while_nothing_comes_back():
    tried = guard()
    tried.contracted("a", 10**9, now=0.0)
    tried.expanded("long contracted", 100.0, now=1.0)
    limit = tried.limit(now=2.0)
    assert (limit.allowed, limit.lost, limit.balance, str(limit)) == (None, 0.0, BUDGET, "")


def test_as_much_is_allowed_as_the_balance_pays_for():
    tried = guard()
    for item in ("a", "b", "c"):
        tried.contracted(item, 1000, now=0.0)
    tried.expanded("a", 8.0, now=10.0)
    limit = tried.limit(now=10.0)
    assert limit.allowed == 3000 * (32 - 8) // 8
    assert str(limit) == (
        "re-expansions of what was contracted within 3200 s took 8.0 s, 24.0 s of a budget of 32.0 s are left: "
        "9000 bytes more may be contracted"
    )


def test_contraction_rests_until_its_losses_are_paid_for_and_goes_on_at_the_known_price():
    tried = guard()
    tried.contracted("a", 1000, now=0.0)
    tried.expanded("a", 64.0, now=0.0)  # 64 seconds for 1000 bytes
    assert tried.limit(now=0.0).allowed == 0
    assert tried.limit(now=WINDOW - 1).allowed == 0
    assert tried.limit(now=2 * WINDOW).allowed == 500
    tried.contracted("b", 300, now=2 * WINDOW)
    assert tried.limit(now=2 * WINDOW).allowed == 200  # the losses still expected from the 300 are subtracted


def test_the_price_falls_when_contractions_cost_nothing_any_more():
    tried = guard()
    tried.contracted("a", 1000, now=0.0)
    tried.expanded("a", 32.0, now=0.0)
    allowed = []
    for window in range(2, 8, 2):
        now = window * WINDOW
        allowed.append(tried.limit(now).allowed)
        tried.contracted(f"in {window}", 1000, now)
    assert allowed[0] == 1000
    assert allowed[1] > 3 * allowed[0]
    assert allowed[2] > 3 * allowed[1]


def test_debt_is_bounded_so_that_contraction_rests_for_eight_windows_at_most():
    tried = guard()
    tried.contracted("a", 10**6, now=0.0)
    tried.expanded("a", 10.0**6, now=0.0)
    assert tried.limit(now=8 * WINDOW).allowed == 0
    assert tried.limit(now=8 * WINDOW + 100).allowed == 1
    assert tried.limit(now=9 * WINDOW).allowed == 32


@pytest.mark.parametrize(("window", "share"), [(0.0, 0.01), (3200.0, 0.0), (3200.0, -1.0)])
def test_a_guard_without_window_or_share_is_refused(window, share):
    with pytest.raises(ValueError, match="expected both above 0"):
        ThrashingGuard(window, share, now=0.0)


def test_an_item_comes_back_once_for_each_contraction_within_the_window():
    ghosts = GhostList(WINDOW)
    ghosts.put("a", now=0.0)
    ghosts.put("b", now=0.0)
    assert ghosts.pop("a", now=WINDOW) == (1, 0.0)
    assert ghosts.pop("a", now=WINDOW) == (0, WINDOW)
    assert ghosts.pop("b", now=WINDOW + 1) == (0, WINDOW + 1)
    ghosts.put("b", now=WINDOW + 2)
    assert ghosts.pop("b", now=2 * WINDOW) == (1, WINDOW + 2)


def test_a_full_ghost_list_keeps_a_sample_that_stands_for_all():
    ghosts = GhostList(WINDOW, capacity=1000)
    for number in range(50_000):
        ghosts.put(f"item {number}", now=0.0)
        assert len(ghosts) <= 1000
    found = sum(ghosts.pop(f"item {number}", now=1.0)[0] for number in range(50_000))
    assert found == pytest.approx(50_000, rel=0.15)  # of 500 to 1000 sampled ones: 3 to 5 standard deviations
    ghosts.put("any", now=2.0)
    assert ghosts.pop("any", now=3.0)[0] == 1


def test_ghosts_take_the_memory_that_is_said():
    tracemalloc.start()
    try:
        ghosts = GhostList(WINDOW)
        for number in range(22_000):
            ghosts.put(str(number), now=float(number) / 100)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / len(ghosts) < 200


def test_a_space_with_a_target_below_its_working_set_stops_above_the_target():
    """1,000 items of 1 KB, of which 400 are opened in turns, each once in 400 s; a re-expansion takes a second."""
    tried, target = guard(), 200
    order = dict.fromkeys([*range(400, 1000), *range(400)])  # least recently opened first
    lost, least = [], len(order)
    for now in range(100_000):
        item = now % 400
        if item in order:
            order.pop(item)
        else:
            tried.expanded(str(item), 1.0, float(now))
            lost.append(now)
        order[item] = None
        freed, allowed = 0, tried.limit(float(now)).allowed
        while len(order) > target and (allowed is None or freed < allowed):
            tried.contracted(str(victim := next(iter(order))), 1000, float(now))
            order.pop(victim)
            freed += 1000
        least = min(least, len(order))
    assert least == 200  # the target was reached before the cost was measured
    assert len(order) > 350  # most of the working set was expanded again
    settled = 50_000
    assert sum(at >= settled for at in lost) <= 1.2 * settled * BUDGET / WINDOW  # without a guard every open is a loss
