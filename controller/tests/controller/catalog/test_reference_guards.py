"""A sentence and a change of its words cannot both succeed, whichever comes between check and commit of the other."""

import hashlib
import io

import pytest

CODE = b"\0asm" + bytes(200)


class FakeSwiftCodeStore:
    """Stores code in a dictionary."""

    def __init__(self):
        self.objects = {}

    def put(self, sha256, code, size):
        self.objects[sha256] = b"".join(code)

    def get(self, sha256):
        return io.BytesIO(self.objects[sha256])


@pytest.fixture(autouse=True)
def words(api, backend):
    """One of each kind of word that a sentence, a stereotype or a filter can use."""
    object.__setattr__(backend, "code", FakeSwiftCodeStore())

    def make(path, **body):
        made = api.post(path, body, format="json")
        assert made.status_code == 201, made.content

    make("/registry/gtenants", name="gold", tenants=["AUTH_a"])
    make("/registry/gcontainers", name="logs", containers=["AUTH_a/l"])
    make("/registry/terms", term="PAPERS", patterns=["pdf"])
    make("/registry/aliases", name="C1", of="target", text="AUTH_a/photos")
    make("/registry/aliases", name="pack", of="filter", text="compression")
    make("/registry/aliases", name="UPLOADS", of="metric", text="PUTS_SEC")
    make("/registry/metrics", name="HEAT", unit="count")
    make("/stereotypes", name="small", text="FOR {target} DO SET compression")
    make("/filters/dependencies", name="j.jar")
    for keyword, environment in (("mix", "wasm"), ("parse", "storlet")):
        language = "wasm" if environment == "wasm" else "java"
        make("/filters", keyword=keyword, environment=environment, language=language, main="org.x.Main")
        code = CODE + keyword.encode()
        assert upload(api, f"/filters/{keyword}/data", code).status_code == 200
    assert upload(api, "/filters/dependencies/j.jar/data", b"PK").status_code == 200


def upload(api, path, data):
    digest = {"X-Content-Sha256": hashlib.sha256(data).hexdigest()}
    return api.put(path, data, content_type="application/octet-stream", headers=digest)


def says(sentence):
    return lambda api: api.post("/policies", {"policy": sentence}, format="json")


#: The used object → how to use it, and the answer after it was deleted.
USES = {
    "/registry/gtenants/gold": (says("FOR GROUP gold DO SET noop"), 400),
    "/registry/gcontainers/logs": (says("FOR GROUP logs DO SET noop"), 400),
    "/registry/aliases/C1": (says("FOR CONTAINER C1 DO SET noop"), 400),
    "/registry/aliases/pack": (says("FOR TENANT AUTH_a DO SET pack"), 400),
    "/registry/aliases/UPLOADS": (says("FOR TENANT AUTH_a WHEN UPLOADS > 3 DO SET noop"), 400),
    "/registry/metrics/HEAT": (says("FOR TENANT AUTH_a WHEN HEAT > 3 DO SET noop"), 400),
    "/filters/mix": (says("FOR TENANT AUTH_a DO SET mix"), 400),
    "/stereotypes/small": (lambda api: api.put("/stereotypes/small/tenants/AUTH_a"), 404),
    "/filters/dependencies/j.jar": (
        lambda api: api.put("/filters/dependencies/AUTH_a/deploy/j.jar", {"filters": ["parse"]}, format="json"),
        409,
    ),
}


@pytest.mark.parametrize("thing", USES)
def test_a_word_in_use_is_not_deleted(api, thing):
    use, _ = USES[thing]
    assert use(api).status_code in (200, 201)
    refused = api.delete(thing)
    assert refused.status_code == 409, refused.content
    message = refused.json()["error"]["message"]
    users = [one["id"] for one in api.get("/policies").json()["policies"]] or ["parse"]
    assert all(one in message for one in users)
    assert api.get(thing).status_code == 200


@pytest.mark.parametrize("thing", USES)
def test_a_policy_is_not_created_with_a_word_that_is_deleted_meanwhile(api, in_between, backend, thing):
    use, status = USES[thing]
    in_between(lambda: api.delete(thing))
    refused = use(api)
    assert refused.status_code == status, refused.content
    assert api.get(thing).status_code == 404
    assert (backend.store.policies(), backend.store.assignments()) == ([], [])
    assert all(not one.dependencies for one in backend.store.uploads().values())


@pytest.mark.parametrize("thing", USES)
def test_a_word_that_comes_into_use_meanwhile_is_not_deleted(api, in_between, thing):
    use, _ = USES[thing]
    in_between(lambda: use(api))
    refused = api.delete(thing)
    assert refused.status_code == 409, refused.content
    assert api.get(thing).status_code == 200


def test_a_term_that_goes_meanwhile_does_not_leave_a_sentence_that_cannot_be_read_again(api, in_between, backend):
    in_between(lambda: api.delete("/registry/terms/PAPERS"))
    made = says("FOR TENANT AUTH_a WHEN OBJECT_TYPE = PAPERS DO SET noop")(api)
    # Without the term the word is a file extension.
    assert made.status_code == 201, made.content
    ((policy, _),) = backend.store.policies()
    assert policy.plan["condition"] == ["type", ["papers"]]


def test_a_term_that_somebody_begins_to_use_while_it_is_changed_stays_as_it_was(api, in_between):
    in_between(lambda: says("FOR TENANT AUTH_a WHEN OBJECT_TYPE = PAPERS DO SET noop")(api))
    changed = api.put("/registry/terms/PAPERS", {"patterns": ["tex"]}, format="json")
    assert changed.status_code == 409, changed.content
    assert api.get("/registry/terms/PAPERS").json()["patterns"] == ["pdf"]
    assert api.delete("/registry/terms/PAPERS").status_code == 409


FORCED = {
    "/registry/gtenants/gold": says("FOR GROUP gold DO SET noop"),
    "/registry/gcontainers/logs": says("FOR GROUP logs DO SET noop"),
    "/registry/terms/PAPERS": says("FOR TENANT AUTH_a WHEN OBJECT_TYPE = PAPERS DO SET noop"),
    "/registry/aliases/C1": says("FOR CONTAINER C1 DO SET noop"),
    "/registry/aliases/pack": says("FOR TENANT AUTH_a DO SET pack"),
    "/registry/aliases/UPLOADS": says("FOR TENANT AUTH_a WHEN UPLOADS > 3 DO SET noop"),
    "/registry/metrics/HEAT": says("FOR TENANT AUTH_a WHEN HEAT > 3 DO SET noop"),
    "/stereotypes/small": lambda api: api.put("/stereotypes/small/tenants/AUTH_a"),
}


@pytest.mark.parametrize("thing", FORCED)
def test_with_force_the_word_goes_and_its_policies_stay_as_they_were_compiled(api, backend, thing):
    FORCED[thing](api)
    before = [policy for policy, _ in backend.store.policies()]
    assert len(before) == 1
    assert api.delete(f"{thing}?force=true").status_code == 204
    assert [policy for policy, _ in backend.store.policies()] == before
    assert api.get(thing).status_code == 404
    assert not any(key.startswith("tenant_member/") for key in backend.store.entries()) or "gtenants" not in thing


def test_a_dependency_that_goes_by_force_leaves_its_filters_without(api, backend):
    USES["/filters/dependencies/j.jar"][0](api)
    assert api.delete("/filters/dependencies/j.jar?force=true").status_code == 204
    assert not backend.store.uploads()["parse"].dependencies


def test_members_who_come_and_go_meanwhile_do_not_keep_a_policy_from_being_made(api, in_between):
    in_between(lambda: api.put("/registry/gtenants/gold/tenants/AUTH_b"))
    assert says("FOR GROUP gold DO SET noop")(api).status_code == 201
    in_between(lambda: api.delete("/registry/gtenants/gold/tenants/AUTH_b"))
    (policy,) = api.get("/policies").json()["policies"]
    revised = api.put(f"/policies/{policy['id']}", {"policy": "FOR GROUP gold DO SET compression"}, format="json")
    assert revised.status_code == 200, revised.content


def test_a_policy_is_not_revised_to_a_word_that_goes_meanwhile(api, create, in_between):
    policy = create("FOR TENANT AUTH_a DO SET noop")
    in_between(lambda: api.delete("/registry/gtenants/gold"))
    refused = api.put(f"/policies/{policy['id']}", {"policy": "FOR GROUP gold DO SET noop"}, format="json")
    assert refused.status_code == 400, refused.content
    assert api.get(f"/policies/{policy['id']}").json()["policy"] == policy["policy"]


def test_a_stereotype_is_not_applied_with_a_word_that_goes_meanwhile(api, in_between, backend):
    text = "FOR {target} DO SET pack"
    assert api.post("/stereotypes", {"name": "tight", "text": text}, format="json").status_code == 201
    in_between(lambda: api.delete("/registry/aliases/pack"))
    assert api.put("/stereotypes/tight/tenants/AUTH_a").status_code == 400
    assert backend.store.policies() == []


def test_a_word_with_an_alias_is_not_deleted(api):
    for name, of, text in (("WARMTH", "metric", "HEAT"), ("blend", "filter", "mix")):
        made = api.post("/registry/aliases", {"name": name, "of": of, "text": text}, format="json")
        assert made.status_code == 201, made.content
    for thing, alias in (("/registry/metrics/HEAT", "WARMTH"), ("/filters/mix", "blend")):
        refused = api.delete(thing)
        assert (refused.status_code, alias in refused.json()["error"]["message"]) == (409, True)
        assert api.delete(f"{thing}?force=true").status_code == 204


@pytest.mark.parametrize("thing", ["/registry/terms/PAPERS", "/registry/aliases/C1", "/registry/metrics/HEAT"])
def test_of_two_concurrent_changes_one_is_a_conflict(api, in_between, thing):
    bodies = {
        "/registry/terms/PAPERS": ({"patterns": ["tex"]}, {"patterns": ["odt"]}),
        "/registry/aliases/C1": ({"text": "AUTH_a/films"}, {"text": "AUTH_a/books"}),
        "/registry/metrics/HEAT": ({"help": "one"}, {"help": "two"}),
    }
    first, second = bodies[thing]
    in_between(lambda: api.put(thing, first, format="json"))
    lost = api.put(thing, second, format="json")
    assert (lost.status_code, "by another request" in lost.json()["error"]["message"]) == (409, True), lost.content
    shown = api.get(thing).json()
    assert all(shown[name] == value for name, value in first.items())


def test_of_two_concurrent_deletions_one_is_a_conflict(api, in_between):
    in_between(lambda: api.delete("/registry/gtenants/gold"))
    assert api.delete("/registry/gtenants/gold").status_code == 409
    assert api.delete("/registry/gtenants/gold").status_code == 404
