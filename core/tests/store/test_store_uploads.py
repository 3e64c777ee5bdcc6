"""Filters registered at run time: in Redis, in the change stream, in the node's snapshot."""

from sluice_core.messages.policies import Change
from sluice_core.messages.uploads import Upload
from sluice_core.snapshot.reader import SnapshotReader, SnapshotWriter
from sluice_core.store.records import Draft, FullState
from sluice_core.testing import assignment

SHA = "ab" * 32


def upload(keyword="shout", revision=1, **more):
    return Upload(keyword, "wasm", "wasm", "", SHA, 10, revision, True, {"help": "x"}, **more)


def test_an_upload_moves_the_epoch_and_is_in_the_change(redis_server, store):
    one = upload(earlier=("cd" * 32,), dependencies={"a.so": "ef" * 32})
    done = store.commit(Draft("me", uploads=(one,), expect={"upload/shout": 0}))
    assert done.epoch == 1
    assert store.uploads() == {"shout": one}
    assert store.upload("shout") == one
    assert store.version("upload/shout") == done.version
    assert store.changes_after(0)[0].uploads == (one,)
    assert store.load().uploads == (one,)
    assert one.files() == (SHA, "ef" * 32, "cd" * 32)

    store.commit(Draft("me", upload_drops=("shout",), expect={"upload/shout": done.version}))
    assert store.uploads() == {}
    assert store.changes_after(1)[0].upload_drops == ("shout",)
    assert store.version("upload/shout") == 0


def test_a_reader_sees_uploads_come_change_and_go(tmp_path):
    writer, reader = SnapshotWriter(tmp_path, boot="b"), SnapshotReader(tmp_path, boot="b")
    writer.open()
    writer.reload(FullState("h", 1, (assignment("p1.0"),), {}, (upload(),)))
    reader.refresh()
    assert reader.uploads == (upload(),)
    assert [one.id for one in writer.assignments()] == ["p1.0"]

    writer.apply([Change(2, "h", 0.0, uploads=(upload(revision=2),))])
    same = reader.uploads
    reader.refresh()
    assert reader.uploads == (upload(revision=2),)
    assert reader.uploads is not same
    same = reader.uploads
    writer.apply([Change(3, "h", 0.0, puts=(assignment("p2.0"),))])
    reader.refresh()
    assert reader.uploads is same
    assert len(writer.uploads()) == 1

    writer.apply([Change(4, "h", 0.0, upload_drops=("shout",))])
    reader.refresh()
    assert reader.uploads == ()
    writer.reload(FullState("h", 5, (), {}, (upload("other"),)))
    reader.refresh()
    assert [one.keyword for one in reader.uploads] == ["other"]
    reader.close()
    writer.close()
