"""``GET /export`` and ``PUT /import``: the round trip is identity, and an import is all or nothing.

The examples of docs/admin/export.md are tried here.
"""

import contextlib
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sluice_controller.api.operations.cluster.changes import EXAMPLE
from sluice_controller.configuration import yaml_adapter
from sluice_controller.configuration.configuration import Configuration, replace_configuration
from sluice_controller.configuration.export import document
from sluice_controller.configuration.import_ import read_configuration
from sluice_core.errors import CallerError
from sluice_core.messages.policies import Entry, PolicyState
from sluice_core.messages.registry import Group
from sluice_core.messages.uploads import Upload
from sluice_core.store.operation import Operation
from sluice_core.store.records import Draft
from sluice_dsl.plan import assignment_for
from sluice_motif_control.calls import announce
from sluice_motif_control.messages import MotifDaemon
from sluice_motifs.runtime_calls import described_templates
from sluice_motifs.templates.registry import load_templates
from sluice_volumes.messages import VolumeRecord

SCRAMBLE = Upload(
    "scramble", "wasm", "wasm", "", "a" * 64, 3, 2, True, {"stage": 450}, {}, ("b" * 64,), created=7, created_by="eve"
)
ENTRIES = (
    Entry("term", "PAPERS", {"values": ["pdf", "text/x-tex"]}, 5, "eve"),
    *Group("gold", members=("AUTH_a", "AUTH_b"), labels={"AUTH_a": "acme"}).entries(),
    Entry("placement", "AUTH_a", {"storage_policy": "ec42"}),
    Entry("activation", "noop", {"url": "http://x/{target}", "undo": "", "timeout": 2.5}),
)
SENTENCES = (
    'FOR CONTAINER "AUTH_a/größe und \\"mehr\\"" WHEN OBJECT_TYPE = PAPERS DO SET compression, SET scramble',
    "FOR TENANT AUTH_a WHEN PUTS_SEC > 3 AND OBJECT_SIZE > 4KiB SUSTAINED 5s DO SET noop TRANSIENT",
    "for tenant AUTH_c\n  do set compression with engine=lz4   # why not",
    "FOR GROUP gold DO SET noop",
)


@pytest.fixture
def export(api):
    def get():
        answer = api.get("/export")
        assert answer.status_code == 200, answer.content
        assert answer.headers["Content-Type"] == "application/yaml"
        return answer.content

    return get


@pytest.fixture
def put(api):
    def send(text, query="", status=200, **headers):
        answer = api.put(f"/import?{query}", text, content_type="application/yaml", headers=headers)
        assert answer.status_code == status, answer.content
        assert answer.headers["Content-Type"] == "application/json"
        return answer.json()

    return send


@pytest.fixture
def full(create, api, backend):
    """A configuration with one object of every kind."""
    backend.store.commit(Draft("eve", uploads=(SCRAMBLE,), entries=ENTRIES))
    made = [create(sentence) for sentence in SENTENCES]
    api.put(f"/policies/{made[2]['id']}", {"enabled": False}, format="json")
    everybody = create("FOR ALL TENANTS WHEN PUTS_SEC > 9 DO SET encryption")
    plan = backend.policy_cache.contents().policies[everybody["id"]].plan
    put = assignment_for(everybody["id"], plan, 0, 3, ["size", ">", 5], "AUTH_z")
    backend.store.commit(Draft("host", puts=(put,), states=(PolicyState(everybody["id"], "active"),)))
    api.delete(f"/policies/{everybody['id']}?keep=true")
    return Configuration.now(backend)


def test_what_was_exported_changes_nothing_when_it_is_imported(full, export, put, backend):
    text, epoch = export(), backend.store.head().epoch
    assert put(text)["changes"] == []
    assert backend.store.head().epoch == epoch
    assert export() == text


def test_an_import_on_an_empty_cluster_makes_the_same_configuration(full, export, put, backend):
    text, assignments = export(), backend.store.assignments()
    backend.store.client.flushdb()
    assert put(text)["create"] == 5 + len(ENTRIES) + 1
    assert Configuration.now(backend) == full
    assert backend.store.assignments() == assignments
    assert backend.store.head().epoch == 1, "one change"
    assert export() == text


def test_an_export_is_readable_yaml(full, export):
    found = yaml.safe_load(export())
    assert list(found) == ["sluice", "policies", "registry", "filters", "metrics", "controllers"]
    first, second = found["policies"][:2]
    assert set(first) == {"id", "policy", "created", "created_by"}
    assert second["policy"].startswith("FOR TENANT AUTH_a WHEN PUTS_SEC > 3")
    assert found["policies"][2]["enabled"] is False
    assert found["filters"][0]["sha256"] == "a" * 64


def test_a_plan_says_what_would_be_created_replaced_and_deleted_and_does_nothing(create, export, put, backend):
    kept, changed, gone = (create(f"FOR TENANT AUTH_{name} DO SET noop") for name in "abc")
    data = yaml.safe_load(export())
    data["policies"] = [one for one in data["policies"] if one["id"] != gone["id"]]
    data["policies"][1] |= {"policy": "FOR TENANT AUTH_b DO SET compression"}
    data["policies"].append({"id": "new", "policy": "FOR TENANT AUTH_d DO SET noop"})
    text = yaml.safe_dump(data)
    epoch = backend.store.head().epoch
    planned = put(text, "plan=true")
    assert backend.store.head().epoch == epoch
    assert {(one["how"], one["name"]) for one in planned["changes"]} == {
        ("create", "new"),
        ("replace", changed["id"]),
        ("delete", gone["id"]),
    }
    assert (planned["plan"], planned["create"], planned["replace"], planned["delete"]) == (True, 1, 1, 1)
    done = put(text)
    assert (done["epoch"], done["changes"]) == (epoch + 1, planned["changes"])
    assert sorted(one.keyword for one in backend.store.assignments()) == ["compression", "noop", "noop"]
    assert put(text)["changes"] == [], "and once more is nothing"
    assert kept["id"] in [one["id"] for one in yaml.safe_load(export())["policies"]]


def test_the_order_of_new_policies_is_that_of_their_age(put, api):
    put("sluice: 1\npolicies:\n" + "".join(f"- {{id: p{n}, policy: FOR TENANT A{n} DO SET noop}}\n" for n in range(4)))
    found = api.get("/policies").json()["policies"]
    assert [one["id"] for one in found] == ["p0", "p1", "p2", "p3"]
    assert {one["created_by"] for one in found} == {"admin"}


def test_words_that_come_with_the_document_are_known_to_its_sentences(put, api):
    assert put(EXAMPLE)["create"] == 3
    found = api.get("/policies/busy").json()
    assert (found["state"], found["dynamic"]) == ("disabled", True)


def test_a_missing_section_is_an_empty_one(create, put, backend):
    create("FOR TENANT AUTH_a DO SET noop")
    assert put("sluice: 1")["delete"] == 1
    assert backend.store.assignments() == []


BAD = {
    "nothing": ("", "expected 1"),
    "a list": ("[]", "not a mapping"),
    "no version": ("policies: []", "expected 1"),
    "another version": ("sluice: 2", "expected 1"),
    "true for one": ("sluice: true", "expected 1"),
    "an unknown section": ("sluice: 1\npolicy: []", "did you mean `policies`"),
    "no yaml": ("sluice: [", "is not YAML"),
    "not utf-8": (b"\xff\xfe\xff", "is not YAML"),
    "an alias": ("sluice: 1\npolicies: &a []\nfilters: *a", "anchors and aliases"),
    "a billion laughs": ("a: &a [x]\nb: [*a, *a]", "anchors and aliases"),
    "an object": ("sluice: !!python/object/apply:os.system ['true']", "tags such as"),
    "a plain tag": ("sluice: !!str 1", "tags such as"),
    "two documents": ("sluice: 1\n---\nsluice: 1", "several YAML documents"),
    "twice": ("sluice: 1\nsluice: 1", "twice"),
    "bottomless": ("sluice: " + "[" * 3000, "nest"),
    "bottomless and long": ("sluice: " + "[" * 300_000, "nest"),
    "a date": ("sluice: 1\npolicies: [{id: 2026-01-01, policy: x}]", "expected quotes"),
    "a date that is none": ("sluice: 2026-99-99", "YAML"),
    "no number": ("sluice: .nan", "not a number"),
    "a number of many digits": ("sluice: " + "9" * 5000, "YAML"),
    "a mapping as a name": ("? {a: 1}\n: 2", "not a text"),
    "a number as a name": ("1: 2", "not a text"),
    "no list": ("sluice: 1\npolicies: {}\nregistry: {a: 1}", "not a list"),
    "no mapping in a list": ("sluice: 1\npolicies: [1]", "number 1: is not a mapping"),
    "no id": ("sluice: 1\npolicies: [{policy: FOR TENANT a DO SET noop}]", "`id` is missing"),
    "an id with a slash": ("sluice: 1\npolicies: [{id: a/b, policy: FOR TENANT a DO SET noop}]", "expected up to 64"),
    "an id with a dot": ("sluice: 1\npolicies: [{id: a.b, policy: FOR TENANT a DO SET noop}]", "expected up to 64"),
    "no sentence": ("sluice: 1\npolicies: [{id: a}]", "`policy` is missing"),
    "two sentences": (
        "sluice: 1\npolicies: [{id: a, policy: FOR TENANT a DO SET noop; FOR TENANT b DO SET noop}]",
        "2 s",
    ),
    "a bad sentence": ("sluice: 1\npolicies: [{id: a, policy: FOR TENANT a DO SET zzz}]", "policy `a`: unknown"),
    "an unknown field": ("sluice: 1\npolicies: [{id: a, policy: x, enable: false}]", "did you mean `enabled`"),
    "a word for enabled": ("sluice: 1\npolicies: [{id: a, policy: x, enabled: on off}]", "expected true or false"),
    "an age that is none": ("sluice: 1\npolicies: [{id: a, policy: x, created: -1}]", "unix milliseconds"),
    "two of one id": (
        "sluice: 1\npolicies: [{id: a, policy: FOR TENANT a DO SET noop}, {id: a, policy: FOR TENANT b DO SET noop}]",
        "number 2: `a` is given twice",
    ),
    "two that contradict": (
        "sluice: 1\npolicies: [{id: a, policy: FOR TENANT a DO SET noop}, {id: b, policy: FOR TENANT a DO SET noop}]",
        "policy `b`",
    ),
    "a kind that is none": ("sluice: 1\nregistry: [{kind: word, name: x, data: {}}]", "expected group"),
    "data of another shape": ("sluice: 1\nregistry: [{kind: term, name: x, data: {values: pdf}}]", "list of texts"),
    "data of another kind": (
        "sluice: 1\nregistry: [{kind: term, name: x, data: {members: []}}]",
        "unknown field of term",
    ),
    "data of another type": ("sluice: 1\nregistry: [{kind: placement, name: x, data: {storage_policy: 3}}]", "a text"),
    "a filter without code's digest": (
        "sluice: 1\nfilters: [{keyword: x, environment: wasm, language: wasm, main: '', sha256: zz, size: 1}]",
        "not a SHA-256",
    ),
    "a filter of no environment": (
        "sluice: 1\nfilters: [{keyword: x, environment: jvm, language: '', main: '', sha256: '', size: 1}]",
        "environment `jvm`",
    ),
    "native code that is no Python": (
        "sluice: 1\nfilters: [{keyword: x, environment: native, language: java, main: '', sha256: '', size: 1}]",
        "expected `python`",
    ),
    "a filter called like an installed one": (
        "sluice: 1\nfilters: [{keyword: noop, environment: wasm, language: wasm, main: '', sha256: '', size: 1}]",
        "keyword of the language",
    ),
    "half a filter": ("sluice: 1\nfilters: [{keyword: x}]", "not a Upload"),
    "kept assignments of somebody else": (
        "sluice: 1\npolicies: [{id: a, policy: x, kept: {plan: {target: {level: tenant, name: b}, actions: "
        "[{kind: filter, verb: set, keyword: noop}]}, assignments: [{id: z.0, policy: z, kind: filter, verb: set, "
        "keyword: noop, target: {level: tenant, name: b}}]}}]",
        "does not belong to this policy",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_an_invalid_document_is_refused_and_changes_nothing(create, put, backend, name):
    text, words = BAD[name]
    create("FOR TENANT AUTH_kept DO SET noop")
    for query in ("", "plan=true"):
        assert words in put(text, query, 400)["error"]["message"]
    assert backend.store.head().epoch == 1


def test_all_errors_of_a_document_are_listed_up_to_a_limit(put):
    text = "sluice: 1\npolicies:\n" + "".join(f"- {{id: p{n}, policy: FOR TENANT a DO SET zzz}}\n" for n in range(50))
    message = put(text, "", 400)["error"]["message"]
    assert "policy `p19`" in message
    assert "policy `p20`" not in message
    assert message.endswith("and 30 more")


def test_if_match_guards_it(create, api, put):
    create("FOR TENANT AUTH_a DO SET noop")
    version = api.get("/export").headers["ETag"]
    create("FOR TENANT AUTH_b DO SET noop")
    put("sluice: 1", "", 412, **{"If-Match": version})
    put("sluice: 1", "", 200, **{"If-Match": api.get("/export").headers["ETag"]})


def test_another_media_type_is_refused_with_the_one_that_is_wanted(api):
    answer = api.put("/import", "{}", content_type="application/json")
    assert answer.status_code == 415
    assert "application/yaml" in answer.json()["error"]["message"]


def test_an_error_of_the_export_is_json(api):
    answer = api.get("/export?x=1", headers={"Accept": "application/yaml"})
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json()["error"]["code"] == 400


def test_a_filter_that_objects_need_is_not_forgotten_unless_it_is_insisted_on(full, put):
    assert "scramble" in put("sluice: 1", "", 409)["error"]["message"]
    assert put("sluice: 1", "force=true&plan=true")["delete"] > 0


def test_an_import_can_be_rolled_back(full, put, api, backend):
    epoch = backend.store.head().epoch
    put("sluice: 1", "force=true")
    assert api.post(f"/changes/{epoch}/rollback").status_code == 200
    assert Configuration.now(backend) == full


PLAIN = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(10**12), 10**12), st.floats(allow_nan=False, allow_infinity=False)
    )
    | st.text(st.characters(codec="utf-8"), max_size=12)
    | st.sampled_from(
        ["yes", "null", "1e3", "0o7", "2026-01-01", "~", "=", "<<", "*a", "&a", "!t", "- x", "a: b", "\n"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(PLAIN)
def test_data_comes_back_from_yaml_as_it_was(data):
    assert json.dumps(yaml_adapter.load(yaml_adapter.dump(data))) == json.dumps(data)


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_bytes_are_data_or_refused(raw):
    with contextlib.suppress(CallerError):
        json.dumps(yaml_adapter.load(raw), allow_nan=False).encode()


def test_a_thousand_policies_of_many_tenants_are_compiled_each_with_its_neighbours_alone(backend):
    items = [{"id": f"p{n}", "policy": f"FOR TENANT AUTH_{n} DO SET noop"} for n in range(1000)]
    empty = Configuration()
    found = read_configuration({"sluice": 1, "policies": items}, backend, "me", empty)
    replace_configuration(backend, lambda _: found, "me")
    assert len(backend.store.assignments()) == 1000
    now = Configuration.now(backend)
    assert document(now) == document(found)
    assert read_configuration(document(found), backend, "you", now) == now


def test_policies_of_volumes_and_motifs_come_back(create, export, put, api, backend):
    keys = backend.store.keys
    templates = described_templates(load_templates())
    backend.store.run(announce(keys, MotifDaemon("d1", "n1", templates=templates)))
    volume = VolumeRecord("id-1", "acme", "acme", "data1")
    backend.store.run(Operation((("HSET", keys.volumes, volume.id, volume.encode()),), bool))
    create("FOR CONTAINER acme/thumbs WHEN FREE_SPACE < 20% DO SET elasticity WITH target_size=10GB")
    create("FOR CONTAINER acme/thumbs DO SET motif WITH template=duplicate_of source=meta:origin")
    create("FOR VOLUME acme/data1 DO SET throttling WITH max_bw=3MBps")
    exported = export()
    for one in api.get("/policies").json()["policies"]:
        assert api.delete(f"/policies/{one['id']}").status_code == 204
    put(exported)
    assert export() == exported
