"""Creation with ``Idempotency-Key``: once, however often and wherever the request is repeated."""

import threading

import pytest
from tests.support.controller.checked_client import CheckedClient

from sluice_controller.policies import services
from sluice_controller.policies.idempotency import policy_ids
from sluice_core.errors import PeerError

STATIC = "FOR TENANT AUTH_test DO SET compression"
PAIR = "FOR TENANT AUTH_a DO SET compression; FOR TENANT AUTH_for WHEN PUTS_SEC > 3 DO SET noop TRANSIENT"


def post(api, text, key):
    return api.post("/policies", {"policy": text}, format="json", headers={"Idempotency-Key": key})


@pytest.mark.parametrize("text", [STATIC, PAIR], ids=["one", "several"])
def test_the_same_request_again_creates_nothing_and_answers_the_same(api, backend, text):
    first, again = post(api, text, "k1"), post(api, text, "k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.headers["Location"] == again.headers["Location"]
    made = first.json().get("policies", [first.json()])
    found = again.json().get("policies", [again.json()])
    assert [one["id"] for one in found] == [one["id"] for one in made]
    assert [one["epoch"] for one in found] == [one["epoch"] for one in made]
    assert len(backend.store.policies()) == len(made)
    assert backend.store.head().epoch == 1


def test_another_key_or_another_text_is_another_request(api, backend):
    assert post(api, "FOR TENANT AUTH_a DO SET noop", "k1").status_code == 201
    assert post(api, "FOR TENANT AUTH_b DO SET noop", "k1").status_code == 201
    assert post(api, "FOR TENANT AUTH_a DO SET noop", "k2").status_code == 409  # contradicts the first policy
    assert len(backend.store.policies()) == 2


def test_a_deleted_policy_is_created_again(api, backend):
    made = post(api, STATIC, "k1").json()
    assert api.delete(f"/policies/{made['id']}").status_code == 204
    assert post(api, STATIC, "k1").json()["id"] == made["id"]
    assert len(backend.store.policies()) == 1


def test_of_several_policies_those_are_shown_that_still_exist(api, backend):
    made = post(api, PAIR, "k1").json()["policies"]
    assert api.delete(f"/policies/{made[0]['id']}").status_code == 204
    assert post(api, PAIR, "k1").json()["id"] == made[1]["id"]
    assert len(backend.store.policies()) == 1


def test_a_policy_that_was_changed_meanwhile_is_shown_as_it_is(api):
    made = post(api, STATIC, "k1").json()
    changed = {"policy": "FOR TENANT AUTH_test DO SET compression WITH engine=gzip"}
    assert api.put(f"/policies/{made['id']}", changed, format="json").status_code == 200
    assert "gzip" in post(api, STATIC, "k1").json()["policy"]


def test_a_request_whose_answer_was_lost_after_the_change_is_known_again(api, backend, monkeypatch):
    commit = backend.store.commit

    def lost(draft):
        commit(draft)
        raise PeerError("redis at `x`: timed out")

    monkeypatch.setattr(backend.store, "commit", lost)
    answer = post(api, STATIC, "k1")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    monkeypatch.undo()
    assert post(api, STATIC, "k1").status_code == 201
    assert len(backend.store.policies()) == 1


def test_two_equal_requests_at_once_create_one_policy(api, backend):
    """The second request reads before the first has committed, and then conflicts with its policy."""
    together = threading.Barrier(2, timeout=20)
    original = services.compile_text
    answers, met = [], threading.local()

    def meet(*given):
        found = original(*given)
        if not hasattr(met, "once"):  # the refused request then compiles again
            met.once = True
            together.wait()
        return found

    def ask():
        own = CheckedClient(headers={"X-Auth-Token": api.defaults["HTTP_X_AUTH_TOKEN"]})
        answers.append(post(own, STATIC, "k1"))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(services, "compile_text", meet)
        threads = [threading.Thread(target=ask) for _ in range(2)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert [one.status_code for one in answers] == [201, 201]
    assert len({one.json()["id"] for one in answers}) == len(backend.store.policies()) == 1


@pytest.mark.parametrize("key", ["", "k" * 129, "a b", "a\tb", "schlüssel"])
def test_an_invalid_key_is_refused(api, backend, key):
    answer = post(api, STATIC, key)
    assert answer.status_code == 400
    assert "`Idempotency-Key`" in answer.json()["error"]["message"]
    assert backend.store.policies() == []


def test_ids_depend_on_text_identity_and_key_and_nothing_else():
    def first(*given):
        return next(policy_ids(*given))

    requests = [("FOR", "admin", "k"), ("FOR ", "admin", "k"), ("FOR", "admi", "nk"), ("FOR", "admin", "l")]
    assert len({first(*one) for one in requests * 2}) == len(requests)
