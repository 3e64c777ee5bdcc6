"""``/filters/dependencies``: files beside the code of registered filters."""

import hashlib
import io

import pytest

DATA = b"PK\x03\x04" + bytes(range(256)) * 300
SHA = hashlib.sha256(DATA).hexdigest()
JAR = {"name": "commons.jar", "help": "for the parser"}
HERE = "/filters/dependencies/commons.jar"


class FakeSwiftCodeStore:
    """Stores code in a dictionary."""

    def __init__(self):
        self.objects = {}

    def put(self, sha256, code, size):
        self.objects[sha256] = b"".join(code)
        assert len(self.objects[sha256]) == size

    def get(self, sha256):
        return io.BytesIO(self.objects[sha256])


@pytest.fixture
def code_store(backend):
    made = FakeSwiftCodeStore()
    object.__setattr__(backend, "code", made)
    return made


@pytest.fixture
def jar(api, code_store):
    answer = api.post("/filters/dependencies", JAR, format="json")
    assert answer.status_code == 201, answer.content
    return answer


@pytest.fixture
def filters(api, code_store):
    """Two filters in containers and one in WebAssembly; the first one is deployed."""
    for keyword, environment, language in (
        ("parse", "storlet", "java"),
        ("lint", "storlet", "java"),
        ("mix", "wasm", "wasm"),
    ):
        body = {"keyword": keyword, "environment": environment, "language": language, "main": "org.x.Main"}
        assert api.post("/filters", body, format="json").status_code == 201
        assert put(api, keyword.encode(), f"/filters/{keyword}/data").status_code == 200
    assert api.put("/filters/AUTH_a/deploy/parse").status_code == 200


def put(api, data=DATA, path=f"{HERE}/data", **headers):
    return api.put(path, data, content_type="application/octet-stream", headers=headers)


def test_it_is_described_then_given_its_data(api, jar, code_store):
    assert jar.headers["Location"] == HERE
    assert jar.json()["sha256"] == ""
    assert api.get(f"{HERE}/data").status_code == 404
    given = put(api, **{"X-Content-Sha256": SHA})
    assert given.status_code == 200, given.content
    assert (given.json()["sha256"], given.json()["size"], given.json()["revision"]) == (SHA, len(DATA), 1)
    back = api.get(f"{HERE}/data")
    assert (b"".join(back.streaming_content), back.headers["X-Content-Sha256"]) == (DATA, SHA)
    assert put(api).headers["ETag"] == given.headers["ETag"], "the same data are no change"
    assert put(api, DATA + b"2").json()["revision"] == 2
    assert api.get("/filters/dependencies").json()["dependencies"] == [api.get(HERE).json()]
    changed = api.put(HERE, {"help": "other words"}, format="json")
    assert changed.json()["help"] == "other words"
    assert api.put(HERE, {"help": "x"}, format="json", headers={"If-Match": given["ETag"]}).status_code == 412


def test_wrong_data_store_nothing(api, jar, code_store, backend):
    from dataclasses import replace

    assert put(api, **{"X-Content-Sha256": "0" * 64}).status_code == 422
    assert put(api, **{"X-Content-Sha256": "short"}).status_code == 400
    assert put(api, b"").status_code == 400
    assert put(api, **{"If-Match": '"999"'}).status_code == 412
    object.__setattr__(backend, "config", replace(backend.config, code_limit=len(DATA) - 1))
    assert put(api).status_code == 413
    assert (code_store.objects, api.get(HERE).json()) == ({}, jar.json())


def test_deploying_attaches_it_to_the_filters_that_are_deployed_there(api, jar, filters, backend):
    early = api.put("/filters/dependencies/AUTH_a/deploy/commons.jar")
    assert (early.status_code, "no data" in early.json()["error"]["message"]) == (409, True)
    put(api)
    done = api.put("/filters/dependencies/AUTH_a/deploy/commons.jar")
    assert done.status_code == 200, done.content
    assert done.json()["filters"] == ["parse"]
    upload = backend.store.upload("parse")
    assert (upload.dependencies, upload.revision) == ({"commons.jar": SHA}, 2)
    assert SHA in upload.files()
    epoch = backend.store.head().epoch
    assert api.put("/filters/dependencies/AUTH_a/deploy/commons.jar").status_code == 200
    assert backend.store.head().epoch == epoch, "once more changes nothing"
    listed = api.get("/filters/dependencies/AUTH_a/deploy").json()
    assert listed["dependencies"] == [{"name": "commons.jar", "filters": ["parse"]}]
    assert api.get("/filters/dependencies/AUTH_b/deploy").json()["dependencies"] == []
    assert api.put("/filters/dependencies/AUTH_b/deploy/commons.jar").status_code == 404


def test_filters_can_be_named_and_new_data_reach_them_in_one_change(api, jar, filters, backend):
    put(api)
    named = {"filters": ["parse", "lint"]}
    done = api.put("/filters/dependencies/AUTH_a/deploy/commons.jar", named, format="json")
    assert done.json()["filters"] == ["lint", "parse"]
    epoch = backend.store.head().epoch
    put(api, DATA + b"2")
    assert backend.store.head().epoch == epoch + 1
    other = hashlib.sha256(DATA + b"2").hexdigest()
    assert {backend.store.upload(one).dependencies["commons.jar"] for one in named["filters"]} == {other}
    back = api.put("/filters/dependencies/AUTH_a/undeploy/commons.jar")
    assert back.json()["filters"] == ["lint"]
    assert api.put("/filters/dependencies/AUTH_a/undeploy/commons.jar").status_code == 404


def test_one_in_use_is_not_deleted_unless_forced_and_is_then_detached(api, jar, filters, backend):
    put(api)
    api.put("/filters/dependencies/AUTH_a/deploy/commons.jar")
    refused = api.delete(HERE)
    assert (refused.status_code, "parse" in refused.json()["error"]["message"]) == (409, True)
    assert api.delete(f"{HERE}?force=true").status_code == 204
    assert backend.store.upload("parse").dependencies == {}
    assert api.get(HERE).status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"filters": ["mix"]}, 409),
        ({"filters": ["nothing"]}, 404),
        ({"filters": []}, 404),
        ({"filters": "parse"}, 400),
        ({"filter": ["parse"]}, 400),
        ([], 400),
    ],
)
def test_what_cannot_be_attached_is_refused(api, jar, filters, backend, body, status):
    put(api)
    refused = api.put("/filters/dependencies/AUTH_a/deploy/commons.jar", body, format="json")
    assert refused.status_code == status, refused.content
    assert not any(one.dependencies for one in backend.store.uploads().values())


@pytest.mark.parametrize("name", ["", "deploy", "dependencies", ".hidden", "a/b", "..", "a\nb", 7, None, "commons.jar"])
def test_names_that_cannot_be_files_are_refused(api, jar, name):
    refused = api.post("/filters/dependencies", {"name": name}, format="json")
    assert refused.status_code in (400, 409), refused.content
    assert len(api.get("/filters/dependencies").json()["dependencies"]) == 1


def test_describing_a_filter_anew_keeps_its_dependencies(api, jar, filters, backend):
    put(api)
    api.put("/filters/dependencies/AUTH_a/deploy/commons.jar")
    assert api.put("/filters/parse", {"help": "other words"}, format="json").status_code == 200
    assert backend.store.upload("parse").dependencies == {"commons.jar": SHA}


def test_a_filter_is_not_unregistered_under_its_aliases_and_takes_its_service_with_it(api, filters):
    api.post("/registry/aliases", {"name": "check", "of": "filter", "text": "lint"}, format="json")
    api.post("/registry/filters", {"keyword": "lint", "url": "http://a.example/"}, format="json")
    refused = api.delete("/filters/lint")
    assert (refused.status_code, "check" in refused.json()["error"]["message"]) == (409, True)
    assert api.delete("/filters/lint?force=true").status_code == 204
    body = {"keyword": "lint", "environment": "storlet", "language": "java", "main": "org.x.Main"}
    api.post("/filters", body, format="json")
    put(api, b"lint", "/filters/lint/data")
    assert not api.get("/registry/filters/lint").json()["activation"]["federated"]
