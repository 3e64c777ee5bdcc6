"""``/policies`` on a real Redis; every answer is also compared with the schema (see conftest).

The examples of docs/reference/rest-api.md are tried here.
"""

import threading
import time

import pytest

from sluice_core.messages.nodes import NodeReport
from sluice_core.messages.policies import Firing, PolicyState
from sluice_core.store.records import Draft
from sluice_dsl.plan import assignment_for

DYNAMIC = "FOR TENANT AUTH_test WHEN PUTS_SEC > 3 DO SET compression WITH engine=zstd ON PROXY TRANSIENT"
STATIC = "FOR TENANT AUTH_test DO SET compression"


def test_a_static_policy_is_created_with_its_assignments(api, create, backend):
    made = create(STATIC)
    assert made["state"] == "active"
    assert not made["dynamic"]
    assert made["created_by"] == "admin"
    assert made["created_at"].endswith("Z")
    assert made["policy"].startswith("FOR TENANT AUTH_test DO SET compression")
    assert made["source"] == STATIC
    (assignment,) = backend.store.assignments()
    assert (assignment.id, assignment.policy, assignment.keyword) == (f"{made['id']}.0", made["id"], "compression")
    assert made["epoch"] == backend.store.head().epoch == 1
    shown = api.get(f"/policies/{made['id']}")
    assert {**shown.json(), "warnings": []} == {**made, "activations": shown.json()["activations"], "infeasible": None}
    assert shown.headers["ETag"] == f'"{made["version"]}"'


def test_location_and_etag_name_the_new_policy(api):
    response = api.post("/policies", {"policy": STATIC}, format="json")
    assert response.headers["Location"] == f"/policies/{response.json()['id']}"
    assert response.headers["ETag"] == f'"{response.json()["version"]}"'


def test_a_dynamic_policy_waits_for_its_actor(create, backend):
    made = create(DYNAMIC)
    assert (made["state"], made["dynamic"], made["condition"]) == ("waiting", True, "PUTS_SEC > 3")
    assert made["actions"][0]["life"] == "transient"
    assert backend.store.assignments() == []


def test_firings_and_observed_values_are_shown(api, create, backend):
    made = create(DYNAMIC)
    firing = Firing(at=1000.5, what="set", window=1000)
    backend.store.commit(Draft("host", states=(PolicyState(made["id"], "active", firings=(firing,)),)))
    seen = {"window": int(time.time()) - 1, "values": {"PUTS_SEC": 7.0}, "members": {}}
    backend.store.observe({made["id"]: seen})
    shown = api.get(f"/policies/{made['id']}").json()
    assert shown["state"] == "active"
    assert shown["observed"] == {**seen, "units": {"PUTS_SEC": "per_second"}}
    assert shown["firings"] == [{"at": "1970-01-01T00:16:40.500Z", "what": "set", "member": "", "window": 1000}]
    assert backend.store.watched(time.time()) == [made["id"]]


def test_parameters_are_numbers_for_programs_and_have_units_for_people(api, create, backend):
    text = "FOR TENANT AUTH_a DO SET bandwidth WITH get_bw=30MBps, SET compression WITH min_size=64KiB"
    made = create(text)
    checked = api.post("/policies/check", {"policy": "FOR CLUSTER DO SET replication WITH max_bw=5MBps"}, format="json")
    epoch = backend.store.head().epoch
    effective = api.get("/effective?target=AUTH_a/c/o").json()
    shown = [
        made["actions"],
        api.get(f"/policies/{made['id']}").json()["actions"],
        api.get("/policies").json()["policies"][0]["actions"],
        [step for verdict in reversed(effective["kinds"]) for step in verdict["pipeline"]],
        api.get(f"/changes/{epoch}").json()["assignments"],
    ]
    for actions in shown:
        assert {one["keyword"]: (one["params"], one["params_text"]) for one in actions} == {
            "bandwidth": ({"get_bw": 30e6}, "get_bw=30 MB/s"),
            "compression": ({"min_size": 65536}, "min_size=64 KiB"),
        }
    assert checked.json()["policies"][0]["actions"][0]["params_text"] == "max_bw=5 MB/s"


def test_old_observations_are_not_shown(api, create, backend):
    made = create(DYNAMIC)
    seen = {"window": int(time.time()) - 60, "values": {"PUTS_SEC": 7.0}, "members": {}}
    backend.store.observe({made["id"]: seen})
    assert api.get(f"/policies/{made['id']}").json()["observed"] is None


def test_a_container_without_its_tenant_is_the_default_tenants(api, config):
    from dataclasses import replace

    from django.test import override_settings

    body = {"policy": "FOR CONTAINER logs DO SET compression"}
    assert api.post("/policies/check", body, format="json").status_code == 400
    with override_settings(SLUICE=replace(config, default_tenant="AUTH_home")):
        (checked,) = api.post("/policies/check", body, format="json").json()["policies"]
    assert checked["target"]["name"] == "AUTH_home/logs"


def test_several_sentences_become_several_policies_in_their_order(api, backend):
    text = "FOR TENANT AUTH_b DO SET compression\nFOR TENANT AUTH_a DO SET compression"
    response = api.post("/policies", {"policy": text}, format="json")
    assert response.status_code == 201
    assert response.headers["Location"] == "/policies"
    made = response.json()["policies"]
    assert [one["target"]["name"] for one in made] == ["AUTH_b", "AUTH_a"]
    listed = api.get("/policies").json()["policies"]
    assert [one["id"] for one in listed] == [one["id"] for one in made]
    assert backend.store.head().epoch == 1, "all in one change"


def test_one_invalid_sentence_refuses_the_whole_text(api, backend):
    text = "FOR TENANT AUTH_a DO SET compression\nFOR TENANT AUTH_b WHEN PUT_SEC > 3 DO SET compresion"
    error = api.post("/policies", {"policy": text}, format="json")
    assert error.status_code == 400
    problems = error.json()["error"]["problems"]
    assert {(one["line"], one["near_miss"]) for one in problems} == {(2, "PUTS_SEC"), (2, "compression")}
    for one in problems:
        line, carets = one["caret"].split("\n")
        assert line == text.split("\n")[1]
        assert carets.index("^") == one["column"] - 1
        assert carets.count("^") == one["end_column"] - one["column"]
    assert backend.store.policies() == []
    assert backend.store.head().history == ""


def test_two_static_policies_for_one_filter_and_scope_contradict(api, create):
    made = create(STATIC)
    answer = api.post("/policies", {"policy": STATIC}, format="json")
    assert answer.status_code == 409
    assert made["id"] in answer.json()["error"]["message"]


def test_a_planned_filter_is_not_called_unknown(api):
    answer = api.post("/policies", {"policy": "FOR TENANT AUTH_a DO SET elasticity target_size=10GB"}, format="json")
    assert answer.status_code == 400
    assert "not available on this cluster" in answer.json()["error"]["message"]


def test_check_shows_the_plan_and_changes_nothing(api, backend):
    answer = api.post("/policies/check", {"policy": DYNAMIC}, format="json")
    assert answer.status_code == 200
    (checked,) = answer.json()["policies"]
    assert checked["plan"]["metrics"] == ["PUTS_SEC"]
    assert checked["warnings"] == []
    assert backend.store.head().history == ""


def test_check_warns_of_what_a_narrower_policy_drops(api, create):
    create(STATIC)
    answer = api.post("/policies/check", {"policy": "FOR CONTAINER AUTH_test/c DO SET noop"}, format="json")
    (warning,) = answer.json()["policies"][0]["warnings"]
    assert warning["severity"] == "warning"
    assert "compression" in warning["message"]


BAD_BODIES = {
    "nothing": ("", "`policy` is missing"),
    "no json": ("{", "not valid JSON"),
    "no utf-8": (b"\xff\xfe", "not valid JSON"),
    "not a number": ('{"policy": NaN}', "`NaN`"),
    "twice": ('{"policy": "a", "policy": "b"}', "twice"),
    "bottomless": ("[" * 100_000, "nested"),
    "a list": ("[]", "no object"),
    "a number": ('{"policy": 3}', "not a text"),
    "null": ('{"policy": null}', "missing"),
    "blank": ('{"policy": " "}', "empty"),
    "half a surrogate pair": ('{"policy": "FOR \\ud800"}', "surrogate"),
    "an unknown field": ('{"policie": "x"}', "did you mean `policy`"),
    "too long": ('{"policy": "%s"}' % ("x" * 17_000), "at most 16384"),
}


@pytest.mark.parametrize("path", ["/policies", "/policies/check"])
@pytest.mark.parametrize("name", BAD_BODIES)
def test_an_invalid_body_is_refused(api, path, name):
    body, expected = BAD_BODIES[name]
    answer = api.post(path, body, content_type="application/json")
    assert answer.status_code == 400
    assert expected in answer.json()["error"]["message"]


def test_pages_follow_each_other_to_the_end(api, create):
    made = [create(f"FOR TENANT AUTH_{number} DO SET compression")["id"] for number in range(5)]
    found, marker = [], ""
    while True:
        page = api.get(f"/policies?limit=2&marker={marker}").json()
        found.append([one["id"] for one in page["policies"]])
        marker = page["next_marker"]
        if marker is None:
            break
    assert found == [made[:2], made[2:4], made[4:]]


def test_a_page_goes_on_behind_a_policy_that_was_deleted(api, create):
    made = [create(f"FOR TENANT AUTH_{number} DO SET compression")["id"] for number in range(3)]
    marker = api.get("/policies?limit=1").json()["next_marker"]
    api.delete(f"/policies/{made[0]}")
    page = api.get(f"/policies?marker={marker}").json()["policies"]
    assert [one["id"] for one in page] == made[1:]


def test_lists_are_narrowed_by_tenant_and_state(api, create):
    static = create("FOR CONTAINER AUTH_a/c DO SET compression")["id"]
    dynamic = create("FOR TENANT AUTH_a WHEN PUTS_SEC > 3 DO SET compression")["id"]
    create("FOR TENANT AUTH_ab DO SET compression")
    create("FOR ALL TENANTS DO SET noop")

    def ids(query):
        return [one["id"] for one in api.get(f"/policies?{query}").json()["policies"]]

    assert ids("tenant=AUTH_a") == [static, dynamic]
    assert ids("tenant=AUTH_a&state=waiting") == [dynamic]
    assert ids("state=failed") == []


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=x",
        "limit=-1",
        "limit=%C2%B2",
        "marker=x",
        "marker=%C2%B2-x",
        "state=on",
        "limt=3",
    ],
)
def test_an_invalid_query_is_refused(api, query):
    answer = api.get(f"/policies?{query}")
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


def test_deleting_a_policy_takes_its_assignments_back(api, create, backend):
    made = create(STATIC)
    assert api.delete(f"/policies/{made['id']}").status_code == 204
    assert backend.store.assignments() == []
    assert api.get(f"/policies/{made['id']}").status_code == 404
    assert api.delete(f"/policies/{made['id']}").status_code == 404


def test_if_match_guards_a_deletion(api, create):
    made = create(STATIC)
    path = f"/policies/{made['id']}"
    assert api.delete(path, headers={"If-Match": f'"{made["version"] + 1}"'}).status_code == 412
    assert api.delete(path, headers={"If-Match": "x"}).status_code == 400
    assert api.delete(path, headers={"If-Match": f'"{made["version"]}"'}).status_code == 204


def fire(backend, policy_id, member="", when=True):
    """The writes of an actor when its condition holds."""
    one = backend.policy_cache.contents().policies[policy_id]
    put = assignment_for(policy_id, one.plan, 0, one.policy.created, when, member)
    backend.store.commit(Draft("host", puts=(put,), states=(PolicyState(policy_id, "active"),)))
    return put


def test_keep_leaves_what_is_in_force_under_a_static_policy(api, create, backend):
    made = create(DYNAMIC)
    before = fire(backend, made["id"], when=["size", ">", 4096])
    answer = api.delete(f"/policies/{made['id']}?keep=true")
    assert answer.status_code == 200
    kept = answer.json()
    assert kept["id"] != made["id"]
    assert (kept["dynamic"], kept["state"]) == (False, "active")
    assert kept["policy"] == (
        "FOR TENANT AUTH_test WHEN OBJECT_SIZE > 4096 DO SET compression WITH engine=zstd ON PROXY"
    )
    (after,) = backend.store.assignments()
    assert (after.policy, after.id) == (kept["id"], f"{kept['id']}.0")
    assert (after.target, after.when, after.created) == (before.target, before.when, before.created)
    assert api.get(f"/policies/{made['id']}").status_code == 404
    assert api.post("/policies/check", {"policy": kept["policy"]}, format="json").status_code == 409
    assert api.delete(f"/policies/{kept['id']}").status_code == 204
    assert backend.store.assignments() == []


def test_keep_of_a_policy_for_many_names_its_members(api, create, backend):
    made = create("FOR ALL TENANTS WHEN PUTS_SEC > 3 DO SET compression")
    fire(backend, made["id"], "AUTH_b")
    fire(backend, made["id"], "AUTH_a")
    kept = api.delete(f"/policies/{made['id']}?keep=true").json()
    assert kept["policy"] == "FOR TENANT AUTH_a DO SET compression; FOR TENANT AUTH_b DO SET compression"
    ranks = {(one.member, one.target.select) for one in backend.store.assignments()}
    assert ranks == {("AUTH_a", "all"), ("AUTH_b", "all")}


def test_keep_of_a_policy_with_nothing_in_force_is_a_plain_deletion(api, create):
    assert api.delete(f"/policies/{create(DYNAMIC)['id']}?keep=true").status_code == 204


def test_keep_of_a_static_policy_is_refused(api, create):
    assert api.delete(f"/policies/{create(STATIC)['id']}?keep=true").status_code == 400


def test_wait_answers_as_soon_as_all_live_nodes_have_acknowledged(api, backend):
    now = time.time()
    backend.store.report(NodeReport("old", "h", 1, at=now - 60))
    backend.store.report(NodeReport("broken", "h", 0, "failed", "no space left", at=now))
    backend.store.report(NodeReport("n1", "", 0, at=now))

    def acknowledge():
        while not (head := backend.store.head()).history:
            pass
        backend.store.report(NodeReport("n1", head.history, head.epoch, at=time.time()))

    agent = threading.Thread(target=acknowledge)
    agent.start()
    begun = time.monotonic()
    answer = api.post("/policies?wait=30", {"policy": STATIC}, format="json")
    agent.join()
    assert time.monotonic() - begun < 10
    assert answer.json()["enforced"] == {
        "nodes": 1,
        "total": 3,
        "refused": [{"node": "broken", "reason": "failed: no space left"}],
        "waiting": [],
        "away": ["old"],
    }


def test_wait_ends_after_its_seconds(api, backend):
    backend.store.report(NodeReport("n1", "", 0, at=time.time()))
    answer = api.post("/policies?wait=0.1", {"policy": STATIC}, format="json")
    assert answer.status_code == 201
    assert answer.json()["enforced"]["waiting"] == ["n1"]


@pytest.mark.parametrize("seconds", ["31", "-1", "nan", "x", "inf"])
def test_wait_has_limits(api, seconds):
    assert api.post(f"/policies?wait={seconds}", {"policy": STATIC}, format="json").status_code == 400


def test_a_waiter_above_the_limit_is_answered_at_once(api, backend):
    backend.store.report(NodeReport("n1", "", 0, at=time.time()))
    while backend.waiters.acquire(blocking=False):
        pass
    begun = time.monotonic()
    assert api.post("/policies?wait=30", {"policy": STATIC}, format="json").status_code == 201
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    ("action", "marked", "message"),
    [
        (
            "compression WITH engine=gzip level=12",
            "12",
            "parameter `level` of `compression` with engine=gzip: expected 0",
        ),
        (
            "csv_select WITH columns=name header=no",
            "columns",
            "`csv_select`: `header` is `no`, so columns are called _1",
        ),
    ],
)
def test_incompatible_parameters_are_refused(api, action, marked, message):
    text = f"FOR TENANT AUTH_a DO SET {action}"
    answer = api.post("/policies", {"policy": text}, format="json")
    assert answer.status_code == 400
    (problem,) = answer.json()["error"]["problems"]
    assert problem["message"].startswith(message)
    assert problem["column"] == text.index(marked) + 1


@pytest.mark.parametrize("params", ["engine=gzip level=6", "engine=gzip level=9", "level=-7", "engine=lz4 level=-1"])
def test_every_level_that_an_engine_has_is_accepted(create, params):
    assert create(f"FOR TENANT AUTH_a DO SET compression WITH {params}")["state"] == "active"


def test_compression_on_the_disks_of_an_erasure_coded_container_is_warned_of(api, backend):
    from dataclasses import replace

    native = replace(backend.native, erasure_coded=frozenset({"AUTH_a/coded"}))
    object.__setattr__(backend, "native", native)
    sentence = "FOR CONTAINER AUTH_a/{} DO SET compression ON STORAGE_NODE"
    for name, expected in (("coded", 1), ("plain", 0)):
        checked = api.post("/policies/check", {"policy": sentence.format(name)}, format="json").json()
        warnings = checked["policies"][0]["warnings"]
        assert len(warnings) == expected
        assert all("PROXY" in one["message"] for one in warnings)


def test_sentences_about_motifs_are_taken_while_a_daemon_announces_templates(api, backend, create):
    from sluice_core.describe import MOTIF, ActionInfo, Parameter
    from sluice_motif_control.calls import announce
    from sluice_motif_control.messages import MotifDaemon, MotifTemplate

    url = ActionInfo("url", MOTIF, "from the web", (Parameter("source", "str", "where", required=True),))
    concat = ActionInfo("concat", MOTIF, "joined")
    for number, known in enumerate([(url, concat), (url,)]):
        templates = tuple(MotifTemplate.describe(one, "derived", True) for one in known)
        backend.store.run(announce(backend.store.keys, MotifDaemon(f"n{number}/1", f"n{number}", templates=templates)))
    made = create("FOR TENANT AUTH_a DO SET elasticity target_size=10GB policy=s4lru")
    assert made["target"]["name"] == "AUTH_a"
    create("FOR CONTAINER AUTH_a/c DO SET motif WITH template=url source=meta:origin")
    answer = api.post("/policies", {"policy": "FOR AUTH_b DO SET motif WITH template=concat"}, format="json")
    assert "expected one of url, got `concat`" in answer.json()["error"]["message"], "not every daemon knows it"
    held = api.get("/effective?target=AUTH_a/c/o").json()
    (motifs,) = [one for one in held["kinds"] if one["kind"] == "motif"]
    assert [one["keyword"] for one in motifs["pipeline"]] == ["motif", "elasticity"]
    assert motifs["overridden"] == []
