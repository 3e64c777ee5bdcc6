"""``/registry/gtenants`` and ``/registry/gcontainers``."""

from dataclasses import replace

import pytest


@pytest.fixture
def named(backend):
    """Two projects with names."""
    native = replace(backend.native, tenants={"acme": "AUTH_acme", "beta": "AUTH_beta"})
    object.__setattr__(backend, "native", native)


@pytest.fixture
def gold(api, named):
    answer = api.post("/registry/gtenants", {"name": "gold", "tenants": ["acme", "AUTH_x"]}, format="json")
    assert answer.status_code == 201, answer.content
    return answer


def test_a_group_is_made_shown_and_listed(api, gold):
    assert gold.headers["Location"] == "/registry/gtenants/gold"
    shown = api.get("/registry/gtenants/gold")
    assert shown.json() == gold.json()
    assert shown.headers["ETag"] == gold.headers["ETag"]
    assert shown.json()["tenants"] == ["AUTH_acme", "AUTH_x"]
    assert shown.json()["labels"] == {"AUTH_acme": "acme"}
    assert api.get("/registry/gtenants").json() == {"gtenants": [gold.json()], "next_marker": None}


def test_put_adds_a_member_without_if_match_and_honours_it(api, gold):
    more = api.put("/registry/gtenants/gold", {"tenant": "beta"}, format="json")
    assert more.json()["tenants"] == ["AUTH_acme", "AUTH_beta", "AUTH_x"]
    stale = {"If-Match": gold.headers["ETag"]}
    assert api.put("/registry/gtenants/gold", {"tenant": "AUTH_y"}, format="json", headers=stale).status_code == 412
    again = api.put("/registry/gtenants/gold", {"tenant": "beta"}, format="json")
    assert again.headers["ETag"] == more.headers["ETag"], "nothing was written"
    anew = api.put("/registry/gtenants/gold", {"tenants": ["beta"]}, format="json")
    assert (anew.json()["tenants"], anew.json()["labels"]) == (["AUTH_beta"], {"AUTH_beta": "beta"})


@pytest.mark.parametrize("body", [{}, {"tenant": "a", "tenants": []}, {"tenant": ""}, {"tenants": "a"}, {"x": 1}, []])
def test_put_takes_one_member_or_all_members(api, gold, body):
    refused = api.put("/registry/gtenants/gold", body, format="json")
    assert refused.status_code == 400, refused.content
    assert api.get("/registry/gtenants/gold").json() == gold.json()


def test_members_are_resources(api, gold):
    here = "/registry/gtenants/gold/tenants"
    assert api.get(f"{here}/acme").json() == {"path": "AUTH_acme", "label": "acme"}
    assert api.get(f"{here}/AUTH_acme").json() == {"path": "AUTH_acme", "label": "acme"}
    assert api.get(f"{here}/beta").status_code == 404
    assert api.put(f"{here}/beta").json() == {"path": "AUTH_beta", "label": "beta"}
    first = api.get(f"{here}?limit=2").json()
    assert [one["path"] for one in first["members"]] == ["AUTH_acme", "AUTH_beta"]
    rest = api.get(f"{here}?limit=2&marker={first['next_marker']}").json()
    assert ([one["path"] for one in rest["members"]], rest["next_marker"]) == (["AUTH_x"], None)
    assert api.delete(f"{here}/acme").status_code == 204
    assert api.delete(f"{here}/acme").status_code == 404
    assert api.get("/registry/gtenants/gold").json()["tenants"] == ["AUTH_beta", "AUTH_x"]
    assert api.get("/registry/gtenants/gold").json()["labels"] == {"AUTH_beta": "beta"}


def test_a_group_that_a_policy_targets_is_not_deleted(api, gold, create):
    policy = create("FOR GROUP gold DO SET compression")
    assert policy["target"] == {"level": "tenant", "select": "group", "name": "gold", "label": ""}
    refused = api.delete("/registry/gtenants/gold")
    assert refused.status_code == 409
    assert policy["id"] in refused.json()["error"]["message"]
    assert api.delete("/registry/gtenants/gold?force=true").status_code == 204
    assert api.get("/registry/gtenants/gold").status_code == 404
    unknown = api.post("/policies", {"policy": "FOR GROUP gold DO SET noop"}, format="json")
    assert unknown.status_code == 400


def test_containers_have_groups_of_their_own(api, named):
    made = api.post("/registry/gcontainers", {"name": "archives", "containers": ["acme/logs"]}, format="json")
    assert made.status_code == 201, made.content
    assert made.json()["containers"] == ["AUTH_acme/logs"]
    assert api.put("/registry/gcontainers/archives/containers/AUTH_x/old").json()["path"] == "AUTH_x/old"
    assert api.get("/registry/gcontainers/archives/containers/acme/logs").json()["label"] == "acme/logs"
    assert api.put("/registry/gcontainers/archives", {"container": "acme"}, format="json").status_code == 400
    assert api.get("/registry/gtenants").json()["gtenants"] == []
    assert api.delete("/registry/gcontainers/archives/containers/AUTH_x/old").status_code == 204
    policy = api.post("/policies", {"policy": "FOR archives DO SET compression"}, format="json")
    assert policy.json()["target"]["level"] == "container"


@pytest.mark.parametrize(
    ("name", "status", "word"),
    [
        ("", 400, "empty"),
        (" ", 400, "empty"),
        (" gold", 400, "blanks"),
        ("for", 400, "language"),
        ("a/b", 400, "/"),
        ("..", 400, "URL"),
        (7, 400, "text"),
        (None, 400, "text"),
        ("x" * 201, 400, "200"),
        ("acme", 409, "tenant"),
        ("taken", 409, "alias"),
        ("gold", 409, "group"),
    ],
)
def test_invalid_group_names_are_refused_with_the_reason(api, gold, name, status, word):
    api.post("/registry/aliases", {"name": "taken", "of": "target", "text": "AUTH_x"}, format="json")
    before = api.get("/registry/gtenants").json()
    refused = api.post("/registry/gcontainers", {"name": name}, format="json")
    assert refused.status_code == status, refused.content
    assert word in refused.json()["error"]["message"]
    assert (api.get("/registry/gtenants").json(), api.get("/registry/gcontainers").json()["gcontainers"]) == (
        before,
        [],
    )


@pytest.mark.parametrize("body", [b'{"name": "\\ud800"}', b'{"\\udfff": 1}', b'{"name": "a", "tenants": ["\\uDC00"]}'])
def test_half_a_surrogate_pair_is_refused_wherever_it_stands(api, named, body):
    refused = api.post("/registry/gtenants", body, content_type="application/json")
    assert refused.status_code == 400, refused.content
    assert api.get("/registry/gtenants").json()["gtenants"] == []


NAMES = ["größe 7", "名前", 'a"b\\c', "*[a]?", "line\nbreak", "tab\tand\x00nul", "{target}", "a;b#c"]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_that_can_be_quoted_is_valid(api, named, name):
    from urllib.parse import quote

    from sluice_dsl.syntax.keywords import quote as quoted

    made = api.post("/registry/gtenants", {"name": name, "tenants": ["AUTH_a"]}, format="json")
    assert made.status_code == 201, made.content
    here = f"/registry/gtenants/{quote(name, safe='')}"
    assert made.headers["Location"] == here
    assert api.get(here).json()["name"] == name
    assert api.put(f"{here}/tenants/AUTH_b").status_code == 200
    policy = api.post("/policies", {"policy": f"FOR GROUP {quoted(name)} DO SET noop"}, format="json")
    assert policy.json()["target"]["name"] == name
    assert api.delete(here).status_code == 409
    api.delete(f"/policies/{policy.json()['id']}")
    assert api.delete(here).status_code == 204


def test_lists_are_paged_and_chosen_by_prefix(api, named):
    for name in ("b1", "a", "b3", "b2"):
        api.post("/registry/gtenants", {"name": name}, format="json")
    first = api.get("/registry/gtenants?prefix=b&limit=2").json()
    assert [one["name"] for one in first["gtenants"]] == ["b1", "b2"]
    rest = api.get(f"/registry/gtenants?prefix=b&limit=2&marker={first['next_marker']}").json()
    assert ([one["name"] for one in rest["gtenants"]], rest["next_marker"]) == (["b3"], None)
    for wrong in ("limit=0", "limit=x", "colour=red"):
        assert api.get(f"/registry/gtenants?{wrong}").status_code == 400


def test_two_who_make_the_same_name_at_once_do_not_both_get_it(api, backend, named):
    from sluice_controller.catalog import entries
    from sluice_core.errors import Conflict
    from sluice_core.messages.registry import CONTAINER_GROUP, GROUP, Alias, Group

    entries.create(backend, Group("gold", members=("a",)), "t", (CONTAINER_GROUP,))
    for thing, rivals in ((Alias("gold", text="AUTH_a"), (GROUP,)), (Group("gold"), ())):
        with pytest.raises(Conflict):
            entries.create(backend, thing, "t", rivals)
