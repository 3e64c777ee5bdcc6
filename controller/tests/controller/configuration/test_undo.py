"""The last change is undone by rolling back to the one before it, after a look at the plan."""

import pytest

STATIC = "FOR TENANT AUTH_a DO SET compression"
LISTS = (
    "/policies", "/registry/gtenants", "/registry/gcontainers", "/registry/aliases", "/registry/terms",
    "/registry/metrics", "/filters/scramble", "/stereotypes", "/registry/filters",
)  # fmt: skip
FILTER = {"keyword": "scramble", "environment": "wasm", "language": "wasm", "main": "x"}
NO_MEMBERS = {"containers": []}
#: For each kind of object: the request that creates it, its path then, and a request that changes it.
THINGS = {
    "a group": ("/registry/gtenants", {"name": "g", "tenants": ["AUTH_a"]}, "/g", {"tenants": ["AUTH_b"]}),
    "a group of containers": (
        "/registry/gcontainers",
        {"name": "g", "containers": ["AUTH_a/c"]},
        "/g",
        {"containers": []},
    ),
    "an alias": ("/registry/aliases", {"name": "C1", "of": "target", "text": "AUTH_a/c"}, "/C1", {"text": "AUTH_b/c"}),
    "a term": ("/registry/terms", {"term": "PAPERS", "patterns": ["pdf"]}, "/PAPERS", {"patterns": ["doc"]}),
    "a metric": ("/registry/metrics", {"name": "QUEUE", "unit": "count", "help": ""}, "/QUEUE", {"help": "new"}),
    "a filter": ("/filters", FILTER, "/scramble", {"help": "new"}),
    "a stereotype": ("/stereotypes", {"name": "s", "text": "FOR {target} DO SET noop"}, "/s", {"help": "new"}),
    "a policy": ("/policies", {"policy": STATIC}, "", {"policy": STATIC.replace("compression", "noop")}),
    "a switched policy": ("/policies", {"policy": STATIC}, "", {"enabled": False}),
}


@pytest.fixture
def send(api):
    def ask(method, path, body=None):
        answer = getattr(api, method)(path, body, format="json")
        assert answer.status_code in (200, 201, 204), (method, path, answer.content)
        return answer.json() if answer.content else {}

    return ask


@pytest.fixture
def now(api):
    """Everything of the configuration that the API shows."""

    def look():
        seen = {path: api.get(path).json() for path in LISTS}
        for one in seen["/policies"]["policies"]:
            # A restored policy has another version, because of the further change.
            for name in ("version", "epoch", "enforced", "firings"):
                del one[name]
        return seen

    return look


@pytest.fixture
def undo(api, backend, now):
    """Undo the last change: the plan changes nothing, and the planned changes are made."""

    def last():
        epoch, before = backend.store.head().epoch, now()
        planned = api.post(f"/changes/{epoch - 1}/rollback?plan=true")
        assert (planned.status_code, backend.store.head().epoch, now()) == (200, epoch, before)
        done = api.post(f"/changes/{epoch - 1}/rollback", headers={"If-Match": planned["ETag"]})
        assert done.status_code == 200, done.content
        assert done.json()["changes"] == planned.json()["changes"] != []

    return last


def make(send, thing):
    """The path of a new object."""
    path, body, name, _ = THINGS[thing]
    made = send("post", path, body)
    return f"{path}{name}" if name else f"{path}/{made['id']}"


@pytest.mark.parametrize("thing", THINGS)
def test_what_was_created_is_gone_again(send, now, undo, thing):
    before = now()
    make(send, thing)
    assert now() != before
    undo()
    assert now() == before


@pytest.mark.parametrize("thing", THINGS)
def test_what_was_changed_is_as_it_was(send, now, undo, thing):
    path = make(send, thing)
    before = now()
    send("put", path, THINGS[thing][3])
    assert now() != before
    undo()
    assert now() == before


@pytest.mark.parametrize("thing", THINGS)
def test_what_was_deleted_is_there_again(send, now, undo, thing):
    path = make(send, thing)
    before = now()
    send("delete", path)
    assert now() != before
    undo()
    assert now() == before


def test_what_was_switched_on_is_off_again(send, now, undo):
    path = make(send, "a policy")
    send("put", path, {"enabled": False})
    before = now()
    send("put", path, {"enabled": True})
    undo()
    assert now() == before


def test_an_undo_is_refused_when_somebody_changed_something_since_the_plan(api, send):
    make(send, "a group")
    planned = api.post("/changes/0/rollback?plan=true")
    make(send, "a term")
    assert api.post("/changes/0/rollback", headers={"If-Match": planned["ETag"]}).status_code == 412
