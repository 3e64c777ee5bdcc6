"""Policies about volumes by REST: their names, the nodes that enforce them, and the actions in force for one."""

import time
from urllib.parse import quote

import pytest

from sluice_core.messages.nodes import NodeReport
from sluice_core.store.operation import write_documents
from sluice_volumes.messages import VolumeRecord

LIMIT = "DO SET throttling WITH max_bw=3MBps max_iops=3k"


def record(store, *records):
    store.run(write_documents(store.keys.volumes, {one.id: {"v": 1, **one.to_data()} for one in records}))


def report(store, node, konnector="", **more):
    head = store.head()
    store.report(NodeReport(node, head.history, head.epoch, konnector=konnector, at=time.time(), **more))


@pytest.fixture
def volumes(backend):
    """Volumes of two tenants, two of them with the same name."""
    record(
        backend.store,
        VolumeRecord("id-1", "a", "AUTH_a", "data1"),
        VolumeRecord("id-2", "a", "AUTH_a", "backup"),
        VolumeRecord("id-3", "b", "AUTH_b", "backup"),
    )


@pytest.fixture
def refuse(api):
    def post(sentence, status=400):
        answer = api.post("/policies", {"policy": sentence}, format="json")
        assert answer.status_code == status, answer.content
        return answer.json()["error"]["problems"][0]["message"]

    return post


def test_a_volume_is_named_and_its_path_is_stored(create, backend, volumes):
    made = create(f"FOR VOLUME data1 {LIMIT}")
    assert made["target"] == {"level": "volume", "select": "name", "name": "AUTH_a/id-1", "label": "data1"}
    (one,) = backend.store.assignments()
    assert (one.place, one.about, one.params) == ("konnector", ("volumes",), {"max_bw": 3e6, "max_iops": 3000.0})


def test_a_name_of_two_volumes_is_refused_with_both_and_an_unknown_one_with_its_near_miss(refuse, volumes):
    assert "expected one of `AUTH_a/id-2` or `AUTH_b/id-3`" in refuse(f"FOR VOLUME backup {LIMIT}")
    assert refuse(f"FOR VOLUME data {LIMIT}") == "there is no volume `data`, did you mean `data1`"


def test_a_volume_that_came_a_moment_ago_can_be_named(create, backend, volumes):
    create(f"FOR VOLUME data1 {LIMIT}")
    record(backend.store, VolumeRecord("id-4", "a", "AUTH_a", "fresh"))
    assert create(f"FOR VOLUME AUTH_a/fresh {LIMIT}")["target"]["name"] == "AUTH_a/id-4"


def test_without_a_konnector_or_a_volume_there_are_no_volumes(refuse, backend):
    report(backend.store, "proxy-1")
    assert refuse(f"FOR ALL VOLUMES {LIMIT}") == "volumes are not available on this cluster"


def test_a_konnector_alone_makes_volumes_available(create, backend):
    report(backend.store, "consumer-1", "https://192.0.2.1:7000")
    create(f"FOR ALL VOLUMES {LIMIT}")


def test_what_is_fixed_at_the_first_attach_conflicts_with_a_metric(refuse, volumes):
    text = refuse("FOR VOLUME data1 WHEN VOLUME_QUEUE > 3 DO SET encryption", 409)
    assert text.endswith("decided when it is attached for the first time: expected no metric in WHEN")


def test_konnectors_alone_enforce_what_is_about_volumes_alone(create, api, backend, volumes):
    for_volumes, for_both = create(f"FOR VOLUME data1 {LIMIT}"), create("FOR TENANT AUTH_a DO SET encryption")
    report(backend.store, "proxy-1")
    report(backend.store, "consumer-1", "https://192.0.2.1:7000")
    reason = "`throttling` is not available for volumes in konnector 7"
    report(backend.store, "consumer-2", "https://192.0.2.2:7000", refused={f"{for_volumes['id']}.0": reason})
    found = api.get(f"/policies/{for_volumes['id']}").json()["enforced"]
    assert (found["nodes"], found["total"]) == (1, 2)
    assert found["refused"] == [{"node": "consumer-2", "reason": reason}]
    assert api.get(f"/policies/{for_both['id']}").json()["enforced"]["nodes"] == 3


def test_what_is_in_force_for_a_volume_is_shown_with_what_it_overrides(create, api, volumes):
    everywhere, own = create(f"FOR ALL VOLUMES {LIMIT}"), create("FOR VOLUME data1 DO SET throttling WITH read_iops=1k")
    both, objects = create("FOR TENANT AUTH_a DO SET encryption"), create("FOR TENANT AUTH_b DO SET compression")
    create("FOR CONTAINER AUTH_a/id-1 DO SET noop")
    answer = api.get("/effective?volume=AUTH_a/id-1").json()
    assert answer["target"] == {"account": "AUTH_a", "container": "", "object": "", "volume": "id-1"}
    kinds = {one["kind"]: one for one in answer["kinds"]}
    assert {kind: one["decided_by"] for kind, one in kinds.items()} == {"filter": [both["id"]], "throttle": [own["id"]]}
    (lost,) = kinds["throttle"]["overridden"]
    assert (lost["policy"], lost["reason"], lost["by"]) == (everywhere["id"], "narrower", [own["id"]])
    of_objects = api.get("/effective?target=AUTH_b/c/o").json()["kinds"]
    assert [(one["kind"], one["decided_by"]) for one in of_objects] == [("filter", [objects["id"]])]


@pytest.mark.parametrize("query", ["", "volume=AUTH_a/id-1&target=AUTH_a", "volume=AUTH_a", "volume=AUTH_a/b/c"])
def test_effective_wants_one_volume_or_one_target(api, query):
    assert api.get(f"/effective?{query}").status_code == 400


def test_a_group_of_volumes_is_filled_by_names_and_holds_for_each(create, api, volumes):
    made = api.post("/registry/gvolumes", {"name": "disks", "volumes": ["data1"]}, format="json")
    assert (made.status_code, made.json()["volumes"], made.json()["labels"]) == (
        201, ["AUTH_a/id-1"], {"AUTH_a/id-1": "data1"},
    )  # fmt: skip
    added = api.put(f"/registry/gvolumes/disks/volumes/{quote('AUTH_b/id-3')}")
    assert (added.status_code, added.json()["path"]) == (200, "AUTH_b/id-3")
    policy = create(f"FOR GROUP disks {LIMIT}")
    for volume, expected in (("AUTH_a/id-1", [policy["id"]]), ("AUTH_b/id-3", [policy["id"]]), ("AUTH_a/id-2", [])):
        kinds = api.get(f"/effective?volume={volume}").json()["kinds"]
        assert [one for kind in kinds for one in kind["decided_by"]] == expected
    assert api.delete("/registry/gvolumes/disks").status_code == 409
    assert api.delete("/registry/gvolumes/disks/volumes/data1").status_code == 204


def test_an_alias_of_a_volume_says_its_level(create, api, volumes):
    body = {"name": "D1", "of": "target", "text": "data1", "level": "volume"}
    answer = api.post("/registry/aliases", body, format="json")
    assert (answer.status_code, answer.json()["text"], answer.json()["level"]) == (201, "AUTH_a/id-1", "volume")
    assert create(f"FOR D1 {LIMIT}")["target"]["name"] == "AUTH_a/id-1"
    refused = api.post("/registry/aliases", {**body, "name": "D2", "level": "container"}, format="json")
    assert refused.status_code == 400
