"""``/registry/filters``: keywords with their activation URLs."""

from dataclasses import replace

import pytest

from sluice_core.messages.registry import ServiceState

URL = "https://filters.example.org/v1/{target}/filters/{filter}?verb=set"
HERE = "/registry/filters/compression"


def test_by_default_it_is_our_own_deploy_call(api):
    shown = api.get(HERE)
    assert shown.json()["activation"] == {
        "url": "/filters/{target}/deploy/{filter}",
        "undo": "/filters/{target}/undeploy/{filter}",
        "timeout": 5.0,
        "federated": False,
        "service": False,
    }
    assert shown.headers["ETag"] == '"0"'
    listed = {one["keyword"]: one["activation"]["federated"] for one in api.get("/registry/filters").json()["filters"]}
    assert set(listed.values()) == {False}
    assert api.delete(HERE).status_code == 404


def test_a_service_is_registered_changed_and_forgotten(api):
    made = api.post("/registry/filters", {"keyword": "compression", "url": URL}, format="json")
    assert made.status_code == 201, made.content
    assert made.headers["Location"] == HERE
    assert (made.json()["activation"]["url"], made.json()["activation"]["federated"]) == (URL, True)
    assert api.get(HERE).json() == made.json()
    assert api.post("/registry/filters", {"keyword": "compression", "url": URL}, format="json").status_code == 409
    changed = api.put(
        HERE, {"url": "http://a.example/{target}", "undo": "http://a.example/u", "timeout": 1}, format="json"
    )
    assert changed.json()["activation"]["timeout"] == 1.0
    stale = {"If-Match": made.headers["ETag"]}
    assert api.put(HERE, {"url": URL}, format="json", headers=stale).status_code == 412
    assert api.delete(HERE, headers=stale).status_code == 412
    assert api.delete(HERE).status_code == 204
    assert not api.get(HERE).json()["activation"]["federated"]


@pytest.mark.parametrize(
    ("change", "status", "word"),
    [
        ({"help": "what it does"}, 400, "third party"),
        ({"parameters": []}, 400, "third party"),
        ({"keyword": 3}, 400, "keyword"),
        ({"url": ""}, 400, "url"),
        ({"url": "ftp://a.example/"}, 400, "http"),
        ({"url": "/filters/x"}, 400, "http"),
        ({"url": "http://user:secret@a.example/"}, 400, "password"),
        ({"url": "http://{target}/x"}, 400, "hole"),
        ({"url": "http://a.example/{tenant}"}, 400, "hole"),
        ({"url": "http://a.example/\r\nHost: b"}, 400, "URL"),
        ({"url": "http://a.example/ü"}, 400, "URL"),
        ({"url": "http://a.example:port/"}, 400, "URL"),
        ({"url": "http://[::1/"}, 400, "URL"),
        ({"url": "http://a.example/" + "x" * 3000}, 400, "characters"),
        ({"undo": "gopher://a.example/"}, 400, "http"),
        ({"timeout": 0}, 400, "timeout"),
        ({"timeout": "5"}, 400, "timeout"),
        ({"colour": 1}, 400, "colour"),
    ],
)
def test_urls_that_cannot_be_ones_are_refused_and_no_password_is_repeated(api, change, status, word):
    refused = api.post("/registry/filters", {"keyword": "compression", "url": URL, **change}, format="json")
    assert refused.status_code == status, refused.content
    assert word in refused.json()["error"]["message"]
    assert "secret" not in refused.content.decode()
    assert not api.get(HERE).json()["activation"]["federated"]


def test_pages_go_by_keyword(api):
    first = api.get("/registry/filters?limit=2").json()
    rest = api.get(f"/registry/filters?limit=1000&marker={first['next_marker']}").json()
    words = [one["keyword"] for one in (*first["filters"], *rest["filters"])]
    assert words == sorted(words)
    assert len(set(words)) == len(words) > 3
    assert rest["next_marker"] is None
    chosen = api.get("/registry/filters?prefix=comp").json()["filters"]
    assert [one["keyword"] for one in chosen] == ["compression"]


def test_a_policy_shows_what_is_called_with_target_and_parameters(api, create):
    text = "FOR CONTAINER 'AUTH_a/my box' DO SET compression WITH level=3, DELETE noop"
    policy = create(text)
    own = api.get(f"/policies/{policy['id']}").json()["activations"]
    assert own == [
        {
            "keyword": "compression",
            "url": "/filters/AUTH_a/my%20box/deploy/compression",
            "undo": "/filters/AUTH_a/my%20box/undeploy/compression",
            "params": {"level": 3},
            "place": "proxy",
        },
        {
            "keyword": "noop",
            "url": "/filters/AUTH_a/my%20box/undeploy/noop",
            "undo": "",
            "params": {},
            "place": "proxy",
        },
    ]
    api.post("/registry/filters", {"keyword": "compression", "url": URL}, format="json")
    federated = api.get(f"/policies/{policy['id']}").json()["activations"]
    assert federated[0]["url"] == "https://filters.example.org/v1/AUTH_a/my%20box/filters/compression?verb=set"
    assert (federated[0]["undo"], federated[1]) == ("", own[1])
    everybody = {"policy": "FOR ALL TENANTS WHEN PUTS_SEC > 3 DO SET compression"}
    (checked,) = api.post("/policies/check", everybody, format="json").json()["policies"]
    assert checked["activations"][0]["url"] == URL.replace("{filter}", "compression"), (
        "the member is known when it fires"
    )


# -- filters of third parties

SCAN = {
    "keyword": "scan",
    "url": "https://scan.example.org/{target}/on",
    "undo": "https://scan.example.org/{target}/off",
    "help": "look for viruses",
    "parameters": [{"name": "depth", "type": "int", "minimum": 1, "help": "levels of archives"}],
}
POLICY = {"policy": "FOR TENANT AUTH_test DO SET scan WITH depth=3"}


def test_the_filter_of_a_third_party_is_a_word_of_the_language(api):
    assert api.post("/policies", POLICY, format="json").status_code == 400
    made = api.post("/registry/filters", SCAN, format="json")
    assert made.status_code == 201, made.content
    shown = made.json()
    assert (shown["kind"], shown["help"], shown["activation"]["service"]) == ("service", "look for viruses", True)
    assert [one["name"] for one in shown["parameters"]] == ["depth"]
    assert api.get("/registry/filters/scan").json() == shown
    wrong = api.post("/policies", {"policy": "FOR TENANT AUTH_test DO SET scan WITH depht=3"}, format="json")
    assert "did you mean `depth`" in str(wrong.json())
    single = {"policy": "FOR TENANT AUTH_test WHEN OBJECT_SIZE > 5 DO SET scan"}
    assert "a call to a service about its target" in str(api.post("/policies", single, format="json").json())
    assert api.post("/policies", POLICY, format="json").status_code == 201


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"keyword": "no-filter"}, "no-filter"),
        ({"keyword": "deploy"}, "deploy"),
        ({"keyword": "for"}, "language"),
        ({"parameters": {"depth": "int"}}, "list"),
        ({"parameters": [{"name": "depth"}]}, "type"),
        ({"parameters": [{"name": "depth", "type": "number"}]}, "number"),
        ({"parameters": [{"name": "Depth", "type": "int"}]}, "Depth"),
        ({"parameters": [{"name": "depth", "type": "int", "minimun": 1}]}, "minimum"),
    ],
)
def test_a_bad_description_of_a_third_party_filter_is_refused(api, change, word):
    refused = api.post("/registry/filters", {**SCAN, **change}, format="json")
    assert refused.status_code == 400
    assert word in refused.json()["error"]["message"]


def test_a_third_party_filter_in_use_is_neither_deleted_nor_given_other_parameters(api):
    api.post("/registry/filters", SCAN, format="json")
    assert api.post("/policies", POLICY, format="json").status_code == 201
    assert api.delete("/registry/filters/scan").status_code == 409
    assert api.put("/registry/filters/scan", {**SCAN, "parameters": []}, format="json").status_code == 409
    assert api.put("/registry/filters/scan", {**SCAN, "timeout": 9}, format="json").status_code == 200
    assert api.delete("/registry/filters/scan?force=true").status_code == 204
    assert api.get("/registry/filters/scan").status_code == 404


def test_enforced_says_what_the_service_answered(api, backend):
    api.post("/registry/filters", SCAN, format="json")
    name = api.post("/policies", POLICY, format="json").json()["id"]

    def enforced():
        return api.get(f"/policies/{name}").json()["enforced"]

    assert enforced()["waiting"] == ["service scan"]
    state = ServiceState(f"{name}.0", name, "scan", "AUTH_test", "failed", "the service answered 503", attempts=6)
    backend.store.write_service_states({state.assignment: state})
    found = enforced()
    assert (found["total"], found["nodes"], found["waiting"]) == (1, 0, [])
    assert found["refused"] == [
        {"node": "service scan", "reason": "the service answered 503 (6 attempts for `AUTH_test`)"}
    ]
    backend.store.write_service_states({state.assignment: replace(state, state="done", reason="")})
    assert (enforced()["nodes"], enforced()["refused"]) == (1, [])
