import pytest

from sluice_objects.classes.lock import Lock
from sluice_objects.testing import LocalHome


@pytest.fixture
def home():
    return LocalHome(Lock())


def acquire(home, owner, mode="exclusive", timeout=10):
    return home.call("acquire", owner=owner, mode=mode, timeout=timeout)["token"]


def owners(home):
    return [holder["owner"] for holder in home.call("holders")]


@pytest.mark.parametrize(("held", "wanted", "both"), [
    ("exclusive", "exclusive", False), ("exclusive", "shared", False), ("shared", "exclusive", False),
    ("shared", "shared", True),
])  # fmt: skip
def test_only_shared_owners_hold_it_together(home, held, wanted, both):
    acquire(home, "a", held)
    if both:
        acquire(home, "b", wanted)
    else:
        outcome = home.refusal("acquire", owner="b", mode=wanted, timeout=10)
        assert (outcome.status, outcome.message) == (409, f"`a` holds the lock as {held} for 10.000 s")
    assert owners(home) == (["a", "b"] if both else ["a"])


def test_each_grant_has_a_higher_token(home):
    tokens = []
    for owner in "abc":
        tokens.append(acquire(home, owner))
        home.call("release", owner=owner, token=tokens[-1])
    tokens.append(acquire(home, "a"))
    home.call("break_lock")
    tokens.append(acquire(home, "b"))
    assert tokens == sorted(set(tokens))


def test_acquiring_again_renews(home):
    token = acquire(home, "a")
    home.time += 9
    assert acquire(home, "a") == token
    home.time += 9
    assert owners(home) == ["a"]
    assert home.refusal("acquire", owner="a", mode="shared", timeout=1).status == 409


def test_a_lock_ends_with_its_time_out(home):
    token = acquire(home, "a")
    home.time += 9.5
    assert home.refusal("acquire", owner="b", timeout=10).message.endswith("for 0.500 s")
    home.time += 0.5
    assert owners(home) == []
    assert acquire(home, "b") > token
    assert home.refusal("renew", owner="a", token=token).status == 404
    assert home.refusal("release", owner="a", token=token).status == 404


def test_renewing_takes_the_time_out_again(home):
    token = acquire(home, "a")
    home.time += 8
    home.call("renew", owner="a", token=token)
    home.time += 8
    assert home.call("holders") == [{"owner": "a", "mode": "exclusive", "token": token, "remaining": 2.0}]
    home.call("renew", owner="a", token=token, timeout=60)
    assert home.call("holders")[0]["remaining"] == 60.0


def test_a_late_holder_renews_while_no_other_owner_got_it(home):
    token = acquire(home, "a")
    home.time += 11
    assert home.call("renew", owner="a", token=token) == {"token": token}
    assert owners(home) == ["a"]


def test_another_token_of_the_owner_is_refused(home):
    old = acquire(home, "a")
    home.call("break_lock", owner="a")
    acquire(home, "a")
    for name in ("renew", "release"):
        assert home.refusal(name, owner="a", token=old).status == 409
    assert owners(home) == ["a"]


@pytest.mark.parametrize("ahead", [-300.0, 0.0, 300.0])
def test_a_new_home_gives_holders_their_whole_time_again(home, ahead):
    acquire(home, "a")
    home.time += 9
    home.move(home.time + ahead)
    assert home.call("holders")[0]["remaining"] == 10.0
    home.time = max(home.time, home.state.clock) + 9.5
    assert home.refusal("acquire", owner="b", timeout=10).status == 409
    home.time += 0.5
    acquire(home, "b")


def test_breaking_takes_it_from_one_owner_or_all(home):
    for owner in "abc":
        acquire(home, owner, "shared")
    assert home.call("break_lock", owner="b") == {"owners": ["b"]}
    assert home.call("break_lock", owner="b") == {"owners": []}
    assert home.call("break_lock") == {"owners": ["a", "c"]}
    assert home.call("holders") == []


@pytest.mark.parametrize("timeout", [0, -1, 86_401, float("nan"), float("inf"), "10", None, 10**400])
def test_time_outs_are_bounded(home, timeout):
    outcome = home.refusal("acquire", owner="a", timeout=timeout)
    assert outcome.status == 400
    assert "seconds, more than 0 and at most 86400" in outcome.message


def test_an_unknown_mode_has_a_near_miss(home):
    outcome = home.refusal("acquire", owner="a", mode="exclusiv", timeout=1)
    assert outcome.message == "unknown word of argument `mode` `exclusiv`, did you mean `exclusive`"
