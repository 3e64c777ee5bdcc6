"""State in Redis and snapshots that earlier code wrote have the same meaning today."""

import pytest
from tests.compatibility.conftest import RECORDED, read

from sluice_core.messages.predicate import Facts
from sluice_core.snapshot.reader import SnapshotReader
from sluice_core.snapshot.writer import SnapshotWriter
from sluice_core.store.store import Store

ANSWERS = read("answers")
EFFECTIVE = read("effective")
BOOT = "recorded"
#: Lists of shipped items, which grow: path → field, and the name of an entry.
GROWING = {
    "/filters": ("filters", "keyword"),
    "/registry/filters": ("filters", "keyword"),
    "/registry/metrics": ("metrics", "name"),
}


def without_new_fields(found, recorded):
    """``found`` with only those fields of its objects that ``recorded`` has, too."""
    if isinstance(found, dict) and isinstance(recorded, dict):
        return {name: without_new_fields(found[name], recorded[name]) for name in found if name in recorded}
    if isinstance(found, list) and isinstance(recorded, list) and len(found) == len(recorded):
        return [without_new_fields(*pair) for pair in zip(found, recorded, strict=True)]
    return found


@pytest.mark.parametrize("path", sorted(ANSWERS))
def test_the_api_answers_as_before_and_may_say_more(get, path):
    found, recorded = get(path), ANSWERS[path]
    if path not in GROWING:
        assert without_new_fields(found, recorded) == recorded
        return
    field, name = GROWING[path]
    now, before = ({one[name]: one for one in answer[field]} for answer in (found, recorded))
    assert now.keys() >= before.keys()
    if field == "metrics":  # filters may describe themselves differently in each version
        assert without_new_fields({one: now[one] for one in before}, before) == before


def effective(reader, request):
    """The pipelines that a worker finds for a request, as plain data."""
    method, _, path = request.partition(" ")
    account, container, name = path.split("/")
    facts = Facts(method, name, size=5_000_000, content_type="text/plain")
    pipelines = reader.find(account, container, name).resolve(facts)
    assert reader.problem == ""
    return {kind: [step.to_data() for step in steps] for kind, steps in pipelines.items()}


@pytest.fixture(scope="module")
def recorded_snapshot(tmp_path_factory):
    """A copy of the snapshot that the agent wrote, where workers read it."""
    folder = tmp_path_factory.mktemp("snapshot")
    generation = folder / f"gen-1-{BOOT}"
    generation.mkdir()
    (generation / "data.mdb").write_bytes((RECORDED / "data.mdb").read_bytes())
    (folder / "current").symlink_to(generation.name)
    reader = SnapshotReader(folder, boot=BOOT)
    reader.refresh()
    yield reader
    reader.close()


@pytest.fixture(scope="module")
def new_snapshot(redis_url, tmp_path_factory):
    """A snapshot written today from the recorded Redis."""
    folder = tmp_path_factory.mktemp("new")
    store, writer = Store(redis_url), SnapshotWriter(folder)
    writer.open()
    writer.reload(store.load())
    reader = SnapshotReader(folder)
    reader.refresh()
    yield reader
    reader.close()
    writer.close()
    store.close()


@pytest.mark.parametrize("request_line", sorted(EFFECTIVE))
def test_a_recorded_snapshot_gives_the_same_assignments(recorded_snapshot, request_line):
    recorded = EFFECTIVE[request_line]
    assert without_new_fields(effective(recorded_snapshot, request_line), recorded) == recorded


@pytest.mark.parametrize("request_line", sorted(EFFECTIVE))
def test_a_snapshot_of_the_recorded_redis_gives_the_same_assignments(new_snapshot, request_line):
    recorded = EFFECTIVE[request_line]
    assert without_new_fields(effective(new_snapshot, request_line), recorded) == recorded


def test_recorded_uploads_are_known_to_workers(recorded_snapshot):
    uploads = {upload.keyword: upload.revision for upload in recorded_snapshot.uploads}
    assert uploads == {"rot13": 1, "DELETES_SEC": 1, "spread": 1}
