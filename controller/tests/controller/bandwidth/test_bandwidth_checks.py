"""Objectives of bandwidth without effect in the present cluster: refused, or doubted in the answer."""

import re
import time

import pytest

from sluice_core.messages.bandwidth_report import BandwidthReport


@pytest.fixture
def known(backend):
    """Nodes report these storage policies."""
    # As if another host's clock were an hour ahead: the report does not become old while the test runs.
    picture = BandwidthReport(time.time() + 3600, "h", 1, 1, policies={"0": "gold", "1": "ec42"})
    backend.store.client.set(backend.store.keys.bandwidth, picture.encode())


@pytest.fixture
def write(api):
    """Ways to set an objective of AUTH_a under a storage policy; each returns the answer."""
    sentence = "FOR TENANT AUTH_a DO SET bandwidth WITH get_bw=30MBps storage_policy={}"

    def revise(policy):
        text = f"FOR CONTAINER AUTH_a/{policy} DO SET noop"
        other = api.post("/policies", {"policy": text}, format="json").json()
        return api.put(f"/policies/{other['id']}", {"policy": sentence.format(policy)}, format="json")

    return {
        "create": lambda policy: api.post("/policies", {"policy": sentence.format(policy)}, format="json"),
        "check": lambda policy: api.post("/policies/check", {"policy": sentence.format(policy)}, format="json"),
        "revise": revise,
        "value": lambda policy: api.put(f"/bw/AUTH_a/{policy}/30"),
        "objective": lambda policy: api.put(f"/bw/slo/AUTH_a/get_bw/{policy}", {"value": 30}, format="json"),
    }


WAYS = ["create", "check", "revise", "value", "objective"]


def warnings(answer):
    data = answer.json()
    return [one["message"] for one in (data["policies"][0] if "policies" in data else data)["warnings"]]


def shown(api, policy):
    return [one["message"] for one in api.get(f"/policies/{policy}").json()["warnings"]]


@pytest.mark.parametrize("way", WAYS)
def test_an_unknown_storage_policy_is_refused_with_the_near_miss(write, known, backend, way):
    refused = write[way]("glod")
    assert refused.status_code == 400, refused.content
    error = refused.json()["error"]
    assert error["message"].endswith(": swift has no storage policy `glod`, did you mean `gold`")
    assert (error["problems"][0]["near_miss"], error["problems"][0]["code"]) == ("gold", "unknown")
    assert "glod" in error["problems"][0]["caret"].split("\n")[0]
    assert [one for one in backend.store.assignments() if one.kind == "bandwidth"] == []
    message = write[way]("7").json()["error"]["message"]
    assert message.endswith(": swift has no storage policy `7`, expected `gold` or `ec42`")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", ["gold", "GOLD", "1"])
def test_a_known_storage_policy_is_named_in_any_case_or_by_index(write, known, way, policy):
    answer = write[way](policy)
    assert answer.status_code in (200, 201), answer.content
    assert warnings(answer) == []


@pytest.mark.parametrize("way", WAYS)
def test_without_reports_any_storage_policy_is_accepted_with_a_warning(write, way):
    answer = write[way]("glod")
    assert answer.status_code in (200, 201), answer.content
    assert warnings(answer) == ["whether swift has a storage policy `glod` is not known: no node reports its policies"]


def test_an_unknown_storage_policy_is_warned_of_once_nodes_report(api, write, request):
    wrong, right = write["create"]("glod").json(), write["create"]("gold").json()
    assert shown(api, wrong["id"]) == []
    request.getfixturevalue("known")
    assert shown(api, wrong["id"]) == ["swift has no storage policy `glod`, did you mean `gold`"]
    assert shown(api, right["id"]) == []


def test_a_warning_about_a_parameter_of_an_alias_points_at_the_alias(api, known):
    body = {"name": "swift_one", "of": "filter", "text": "bandwidth", "params": {"storage_policy": "glod"}}
    made = api.post("/registry/aliases", body, format="json")
    assert made.status_code == 201, made.content
    text = "FOR TENANT AUTH_a DO SET swift_one WITH get_bw=1MBps"
    (problem,) = api.post("/policies", {"policy": text}, format="json").json()["error"]["problems"]
    assert (problem["near_miss"], text[problem["column"] - 1 : problem["end_column"] - 1]) == ("gold", "swift_one")


def test_a_fault_in_the_second_sentence_is_shown_there_and_nothing_is_written(api, known, backend):
    text = "FOR TENANT AUTH_a DO SET noop\nFOR TENANT AUTH_b DO SET bandwidth WITH put_bw=1MBps storage_policy=ec"
    (problem,) = api.post("/policies", {"policy": text}, format="json").json()["error"]["problems"]
    assert (problem["line"], problem["near_miss"], problem["severity"]) == (2, "ec42", "error")
    assert backend.store.assignments() == []


def test_an_objective_at_the_storage_nodes_says_that_another_keeps_gets_at_the_proxies(api, create):
    value = api.put("/bw/AUTH_a/30").json()
    assert (value["warnings"], shown(api, value["id"])) == ([], [])
    objective = api.put("/bw/slo/AUTH_b/get_bw", {"value": 10}, format="json").json()
    (message,) = [one["message"] for one in objective["warnings"]]
    assert f"also those of policy `{value['id']}`" in message
    (message,) = shown(api, value["id"])
    assert message == f"GETs are still held back at the proxies, because of policy `{objective['policy']}`"
    assert shown(api, objective["policy"]) == []
    (warning,) = create("FOR TENANT AUTH_c DO SET bandwidth WITH max_get_bw=9MBps ON STORAGE_NODE")["warnings"]
    assert f"policy `{objective['policy']}`" in warning["message"]
    assert warning["caret"].endswith("^" * len("STORAGE_NODE")), warning["caret"]


@pytest.mark.parametrize("other", ["put_bw=3MBps", "max_put_bw=3MBps"])
def test_objectives_for_puts_do_not_affect_where_gets_are_limited(api, create, other):
    value = api.put("/bw/AUTH_a/30").json()
    made = create(f"FOR TENANT AUTH_b DO SET bandwidth WITH {other}")
    assert (made["warnings"], shown(api, value["id"])) == ([], [])


def test_a_warning_ends_with_its_reason(api, create):
    value = api.put("/bw/AUTH_a/30").json()
    other = create("FOR TENANT AUTH_b DO SET bandwidth WITH get_bw=10MBps")
    assert shown(api, value["id"])
    api.put(f"/policies/{other['id']}", {"enabled": False}, format="json")
    assert shown(api, value["id"]) == []
    api.put(f"/policies/{other['id']}", {"enabled": True}, format="json")
    assert shown(api, value["id"])
    api.delete(f"/policies/{other['id']}")
    assert shown(api, value["id"]) == []


def test_a_dynamic_objective_counts_while_it_is_in_force(api, create):
    value = api.put("/bw/AUTH_a/30").json()
    create("FOR TENANT AUTH_b WHEN GETS_SEC > 5 DO SET bandwidth WITH get_bw=10MBps")
    (message,) = shown(api, value["id"])
    assert message.endswith("while it holds")
    always = create("FOR ALL TENANTS DO SET bandwidth WITH max_get_bw=99MBps")
    (message,) = shown(api, value["id"])
    assert message.endswith(f"because of policy `{always['id']}`")


def test_two_sentences_of_one_text_are_held_against_each_other(api):
    text = (
        "FOR TENANT AUTH_a DO SET bandwidth WITH get_bw=1MBps ON STORAGE_NODE\n"
        "FOR TENANT AUTH_b DO SET bandwidth WITH get_bw=1MBps"
    )
    found = api.post("/policies/check", {"policy": text}, format="json").json()["policies"]
    first, second = ([one["message"] for one in each["warnings"]] for each in found)
    assert first == ["GETs are still held back at the proxies, because of the sentence in line 2"]
    assert "also those of the sentence in line 1" in second[0]


IN_THE_WAY = [
    ("/bw/AUTH_a/30", "/bw/slo/AUTH_a/get_bw", {"value": 30}, ["PUT /bw/clear/AUTH_a"]),
    ("/bw/AUTH_a/gold/30", "/bw/slo/AUTH_a/get_bw/GOLD", {"value": 30}, ["PUT /bw/clear/AUTH_a/gold"]),
    ("/bw/slo/AUTH_a/get_bw", "/bw/AUTH_a/30", None, ["DELETE /bw/slo/AUTH_a/get_bw"]),
    ("/bw/slo/AUTH_a/put_bw/gold", "/bw/AUTH_a/gold/30", None, ["DELETE /bw/slo/AUTH_a/put_bw/gold"]),
]


@pytest.mark.parametrize(("first", "second", "body", "calls"), IN_THE_WAY)
def test_a_conflict_names_the_policy_and_the_call_that_deletes_it(api, first, second, body, calls):
    made = api.put(first, None if body else {"value": 20}, format="json").json()
    refused = api.put(second, body, format="json")
    assert refused.status_code == 409, refused.content
    message = refused.json()["error"]["message"]
    policy = api.get(f"/policies/{made.get('policy') if not body else made['id']}").json()
    assert f"policy `{policy['id']}` has an objective of this tenant already: `{policy['policy']}`" in message
    told = re.findall(r"`((?:PUT|DELETE) [^`]*)`", message)
    assert told == calls
    for call in told:
        verb, path = call.split()
        assert api.generic(verb, path).status_code in (200, 204)
    assert api.put(second, body, format="json").status_code == 200


def test_a_conflict_names_each_objective_or_the_policy_to_delete(api, create):
    for name in ("get_bw", "max_put_bw"):
        api.put(f"/bw/slo/AUTH_a/{name}", {"value": 20}, format="json")
    message = api.put("/bw/AUTH_a/30").json()["error"]["message"]
    assert "`DELETE /bw/slo/AUTH_a/get_bw` and `DELETE /bw/slo/AUTH_a/max_put_bw` first" in message
    written = create("FOR TENANT AUTH_b DO SET bandwidth WITH get_bw=10MBps")
    message = api.put("/bw/AUTH_b/30").json()["error"]["message"]
    assert f"delete it with `DELETE /policies/{written['id']}` first" in message
