"""The additions of a database with motifs to LevelDB: motifs, the byte limit, and plain error texts."""

import contextlib
import threading

import plyvel
import pytest

from sluice_core.describe import MOTIF, ActionInfo
from sluice_core.errors import CallerError, DecodeError, NotFound, PeerError
from sluice_motifs.api import PRESERVING, ExpansionError, NotContractible
from sluice_motifs.contraction.contractor import ALREADY, CONTRACTED
from sluice_motifs.contraction.preparation import EXPAND
from sluice_motifs.storage.records import MOST_MOTIFS, Motif
from sluice_motifs.testing.shim_suite import ShiftedCopy
from sluice_motifs_kv.database import Database
from sluice_motifs_kv.store import METADATA, VALUES, item_name

COPY = Motif("shifted_copy", {"of": "source"})


class Twin(ShiftedCopy):
    info = ActionInfo("twin", MOTIF, "the same under another name")


class Preserving(ShiftedCopy):
    info = ActionInfo("preserving", MOTIF, "the same that preserves")
    relation = PRESERVING


class Waiting(ShiftedCopy):
    """Waits in the middle until the test lets it continue."""

    info = ActionInfo("waiting", MOTIF, "waits")
    began = threading.Event()
    may_end = threading.Event()

    def expand(self, call):
        self.began.set()
        assert self.may_end.wait(60)
        yield from super().expand(call)


def fill(database, count, size=10):
    """Derived values ``copy 0`` and so on, all of one source."""
    database.put(b"source", b"a" * size)
    for number in range(count):
        database.get_or_make(b"copy %d" % number, COPY)


def contracted(database):
    return [key for key in database.iterator(prefix=b"copy", include_value=False) if database.contracted(key)]


def test_the_least_recently_read_values_give_up_their_bytes(open_database):
    database = open_database(limit=30)
    fill(database, 3)
    assert contracted(database) == []
    database.get(b"copy 0")
    database.get_or_make(b"copy 3", COPY)
    assert contracted(database) == [b"copy 1"]
    assert database.statistics().used == 30


def test_the_policy_says_which_go(open_database):
    database = open_database(limit=30, policy="fifo")
    fill(database, 3)
    database.get(b"copy 0")
    database.get_or_make(b"copy 3", COPY)
    assert contracted(database) == [b"copy 0"]


def test_values_without_motifs_never_count(open_database):
    database = open_database(limit=0)
    database.put(b"source", b"a" * 1000)
    assert database.get(b"source") == b"a" * 1000
    assert database.statistics().used == 0


def test_at_limit_0_each_read_makes_the_value_and_stores_nothing(open_database):
    database = open_database(limit=0)
    fill(database, 2)
    before = database.statistics()
    assert [database.get(b"copy 1") for _ in range(3)] == [b"b" * 10] * 3
    after = database.statistics()
    assert (after.used, after.expanded, after.contracted, after.contracted_bytes) == (0, 0, 2, 20)
    assert (after.expansions - before.expansions, after.hits - before.hits) == (3, 0)


def test_a_limit_may_be_larger_than_any_machine_and_not_negative(open_database):
    database = open_database(limit=10**18)
    fill(database, 3)
    assert contracted(database) == []
    with pytest.raises(CallerError, match="size `-1` is negative, expected at least 0 bytes"):
        database.set_limit(-1)
    with pytest.raises(CallerError, match="size `-1` is negative"):
        Database("nowhere", limit=-1)
    assert database.statistics().limit == 10**18


def test_spare_space_is_filled_from_the_most_recent_contractions(open_database):
    database = open_database()
    fill(database, 10)
    database.set_limit(0)
    assert len(contracted(database)) == 10
    for number in (4, 2, 7):
        database.get(b"copy %d" % number)
    made = wait_for_expansions(database, 3, lambda: database.set_limit(34))
    assert made == {b"copy 7", b"copy 2", b"copy 4"}


def wait_for_expansions(database, count, change):
    """The values that are made in the background after ``change``, once there are this many."""
    before = set(contracted(database))
    done = threading.Event()
    committed = database._store._committed

    def watch(change):
        committed(change)
        if database.statistics().expanded >= count:
            done.set()

    database._store._committed = watch
    change()
    assert done.wait(60)
    return before - set(contracted(database))


def test_a_value_that_is_made_for_the_first_time_counts_as_an_expansion(open_database):
    database = open_database()
    fill(database, 2)
    database.get_or_make(b"copy 0", COPY)
    assert (database.statistics().expansions, database.statistics().hits) == (2, 1)


def test_what_was_contracted_by_hand_stays_so_until_it_is_read(open_database):
    database = open_database(limit=1000)
    fill(database, 3)
    assert database.contract(b"copy 1", EXPAND) == CONTRACTED
    assert database.contract(b"copy 1") == ALREADY
    assert database._elasticity._next_job(fills=True) is None
    assert database.get(b"copy 1") == b"b" * 10
    assert contracted(database) == []


def test_what_gave_up_its_bytes_by_itself_and_then_by_hand_stays_so(open_database):
    database = open_database(limit=20)
    fill(database, 3)
    assert contracted(database) == [b"copy 0"]
    assert database.contract(b"copy 0") == ALREADY
    database.get_or_make(b"copy 3", COPY)
    assert wait_for_expansions(database, 3, lambda: database.set_limit(40)) == {b"copy 1"}


def test_a_value_follows_its_source(open_database):
    database = open_database()
    fill(database, 1)
    database.put(b"source", b"xyz")
    assert database.get(b"copy 0") == b"yz{"
    database.contract(b"copy 0")
    database.put(b"source", b"123")
    assert database.get(b"copy 0") == b"234"


def test_a_value_outlives_its_source_while_it_has_its_bytes(open_database):
    database = open_database()
    fill(database, 2)
    database.contract(b"copy 1")
    database.delete(b"source")
    with pytest.raises(NotContractible, match="source `source` does not exist"):
        database.contract(b"copy 0")
    assert database.get(b"copy 0") == b"b" * 10
    assert database.motifs(b"copy 0") == ()
    with pytest.raises(ExpansionError, match=r"`copy 1` cannot be made again: .*source `source` does not exist"):
        database.get(b"copy 1")


def test_values_that_must_stay_do_not_keep_others_from_going(open_database):
    database = open_database()
    fill(database, 2)
    database.put(b"source 2", b"a" * 10)
    database.get_or_make(b"copy 2", Motif("shifted_copy", {"of": "source 2"}))
    database.delete(b"source")
    database.set_limit(20)
    assert contracted(database) == [b"copy 2"]
    database.set_limit(0)
    assert database.statistics().used == 20


def test_a_snapshot_reads_what_was_contracted_since(open_database):
    database = open_database()
    fill(database, 2)
    database.contract(b"copy 1")
    with database.snapshot() as snapshot:
        database.contract(b"copy 0")
        database.put(b"source", b"new")
        database.delete(b"copy 1")
        assert snapshot.get(b"copy 0") == snapshot.get(b"copy 1") == b"b" * 10
        assert list(snapshot) == [(b"copy 0", b"b" * 10), (b"copy 1", b"b" * 10), (b"source", b"a" * 10)]
        assert snapshot.get(b"nothing", b"default") == b"default"
    assert database.get(b"copy 0") == b"ofx"


def test_a_snapshot_that_is_dropped_is_closed_and_one_that_is_iterated_over_is_not(open_database):
    database = open_database()
    fill(database, 2)
    snapshot = database.snapshot()
    reader = snapshot._reader
    keys, pairs = snapshot.iterator(include_value=False), snapshot.iterator()
    del snapshot
    assert list(keys) == [key for key, _ in pairs] == [b"copy 0", b"copy 1", b"source"]
    del keys, pairs
    with pytest.raises(RuntimeError, match="closed"):
        reader.metadata(b"copy 0")


def test_an_iteration_stores_nothing_and_counts_for_no_policy(open_database):
    database = open_database(limit=20)
    fill(database, 4)
    before = contracted(database), database.statistics()
    assert [value for key, value in database.iterator(prefix=b"copy")] == [b"b" * 10] * 4
    assert (contracted(database), database.statistics()) == before


def test_a_transaction_that_fails_writes_nothing(open_database):
    database = open_database()
    with contextlib.suppress(InterruptedError), database.write_batch(transaction=True) as batch:
        batch.put(b"key", b"value")
        raise InterruptedError
    assert database.get(b"key") is None
    batch = database.write_batch(sync=True)
    batch.put(b"key", b"value")
    batch.clear()
    batch.put(b"other", b"value")
    batch.write()
    assert list(database) == [(b"other", b"value")]


def test_detaching_the_last_motif_makes_the_bytes_and_keeps_them(open_database):
    database = open_database(limit=0, templates=[ShiftedCopy, Twin])
    fill(database, 1)
    database.attach(b"copy 0", Motif("twin", {"of": "source"}))
    assert database.contracted(b"copy 0")
    for template in ("shifted_copy", "twin"):
        database.detach(b"copy 0", template)
    assert database.motifs(b"copy 0") == ()
    assert not database.contracted(b"copy 0")
    database.delete(b"source")
    assert database.get(b"copy 0") == b"b" * 10
    with pytest.raises(NotFound, match="key `copy 0` has no motif of template `twin`"):
        database.detach(b"copy 0", "twin")


def test_no_motif_keeps_a_value_that_another_key_preserves(open_database):
    database = open_database(templates=[Preserving])
    database.put(b"source", b"a")
    database.get_or_make(b"key", Motif("preserving", {"of": "source"}))
    with pytest.raises(NotContractible, match="source `source` may change, and no copy is kept"):
        database.contract(b"key")


def test_what_cannot_be_attached_is_refused_with_the_reason(open_database):
    database = open_database()
    fill(database, 1)
    with pytest.raises(NotFound, match="unknown template `shifted_copi`, did you mean `shifted_copy`"):
        database.attach(b"copy 0", Motif("shifted_copi"))
    with pytest.raises(NotFound, match="there is no item `nothing`"):
        database.attach(b"nothing", COPY)
    with pytest.raises(CallerError, match="`copy 0` has this motif of template `shifted_copy` already"):
        database.attach(b"copy 0", COPY)
    for number in range(1, MOST_MOTIFS):
        database.attach(b"copy 0", Motif("shifted_copy", {"of": "source", "number": number}))
    with pytest.raises(CallerError, match=f"has {MOST_MOTIFS} motifs, and may not have more"):
        database.attach(b"copy 0", Motif("shifted_copy", {"of": "other"}))
    with pytest.raises(ExpansionError, match="source `none` does not exist"):
        database.get_or_make(b"key", Motif("shifted_copy", {"of": "none"}))
    with pytest.raises(CallerError, match="two templates are called `shifted_copy`"):
        open_database(templates=[ShiftedCopy, ShiftedCopy])


def test_bounds_that_contradict_each_other_are_refused(open_database):
    with pytest.raises(CallerError, match="prefix"):
        open_database().iterator(prefix=b"a", start=b"b")


def test_a_client_that_writes_during_an_expansion_wins(open_database):
    database = open_database(templates=[Waiting])
    Waiting.may_end.set()
    database.put(b"source", b"abc")
    database.get_or_make(b"key", Motif("waiting", {"of": "source"}))
    database.contract(b"key")
    Waiting.began.clear()
    Waiting.may_end.clear()
    answers = []
    reader = threading.Thread(target=lambda: answers.append(database.get(b"key")))
    reader.start()
    assert Waiting.began.wait(60)
    database.put(b"key", b"a client's")
    Waiting.may_end.set()
    reader.join()
    assert answers == [b"bcd"]
    assert database.get(b"key") == b"a client's"
    assert database.motifs(b"key") == ()


def test_keys_that_are_no_text_have_names(open_database):
    database = open_database()
    database.put(b"\xff\x00", b"abc")
    database.get_or_make(b"\xfe", Motif("shifted_copy", {"of": item_name(b"\xff\x00")}))
    database.contract(b"\xfe")
    assert database.get(b"\xfe") == b"bcd"


def test_the_runtime_knows_values_with_motifs_and_forgets_them(open_database):
    database = open_database()
    fill(database, 3)
    database.contract(b"copy 1")
    database.put(b"copy 2", b"a client's")
    database.delete(b"copy 0")
    items = database._runtime.items
    assert (len(items), items.statistics("copy 1").expanded) == (1, False)
    database.close()
    assert len(open_database()._runtime.items) == 1


def test_everything_is_as_it_was_after_it_was_opened_again(open_database):
    database = open_database(limit=20)
    fill(database, 3)
    before = contracted(database), database.motifs(b"copy 0"), database.statistics().used
    database.close()
    database = open_database(limit=20)
    assert (contracted(database), database.motifs(b"copy 0"), database.statistics().used) == before
    database.put(b"source", b"b" * 10)
    assert [database.get(b"copy %d" % number) for number in range(3)] == [b"c" * 10] * 3


def test_a_database_belongs_to_one_process(open_database, tmp_path):
    open_database()
    with pytest.raises(PeerError, match="cannot be opened"):
        open_database()


@pytest.mark.parametrize("raw", [b"", b"\xc1", b"\x93\x01\x02", b"\x93\x63\x01\x01"])
def test_damaged_metadata_are_reported_and_can_be_overwritten(open_database, tmp_path, raw):
    database = open_database()
    fill(database, 1)
    database.close()
    with plyvel.DB(str(tmp_path / "db")) as plain:
        plain.put(METADATA + b"copy 0", raw)
    database = open_database(limit=100)
    for read in (lambda: database.get(b"copy 0"), lambda: list(database), lambda: database.contract(b"copy 0")):
        with pytest.raises(DecodeError, match="the metadata of key `copy 0` are"):
            read()
    assert database.get(b"source") == b"a" * 10
    database.put(b"copy 0", b"new")
    assert database.get(b"copy 0") == b"new"


def test_a_damaged_record_of_motifs_is_reported(open_database, tmp_path):
    database = open_database()
    fill(database, 1)
    database.close()
    with plyvel.DB(str(tmp_path / "db")) as plain:
        plain.put(METADATA + b"copy 0", plain.get(METADATA + b"copy 0").replace(b"shifted_copy", b"shifted_c\\py"))
    database = open_database()
    with pytest.raises(DecodeError, match="the record of an item's motifs"):
        database.get(b"copy 0")


def test_missing_bytes_are_reported_and_never_taken_for_an_absent_key(open_database, tmp_path):
    database = open_database()
    fill(database, 1)
    database.close()
    with plyvel.DB(str(tmp_path / "db")) as plain:
        plain.delete(VALUES + b"copy 0")
        plain.delete(VALUES + b"source")
    database = open_database()
    for key in (b"copy 0", b"source"):
        with pytest.raises(ExpansionError, match=f"the bytes of `{key.decode()}` are missing from the database"):
            database.get(key)


def test_a_template_that_is_not_registered_any_more_makes_nothing(open_database):
    database = open_database()
    fill(database, 2)
    database.contract(b"copy 1")
    database.close()
    database = open_database(limit=0, templates=[])
    assert database.get(b"copy 0") == b"b" * 10
    with pytest.raises(ExpansionError, match="no template `shifted_copy`"):
        database.get(b"copy 1")


def test_a_value_that_cannot_be_made_is_tried_once_in_the_background(open_database, caplog):
    database = open_database()
    fill(database, 2)
    database.set_limit(0)
    database.delete(b"source")
    database.put(b"source 2", b"a" * 10)
    database.get_or_make(b"copy 2", Motif("shifted_copy", {"of": "source 2"}))
    made = wait_for_expansions(database, 1, lambda: database.set_limit(100))
    assert made == {b"copy 2"}
    assert contracted(database) == [b"copy 0", b"copy 1"]


def test_a_snapshot_reads_a_value_whose_source_was_gone(open_database):
    database = open_database()
    fill(database, 1)
    database.delete(b"source")
    with database.snapshot() as snapshot:
        assert list(snapshot) == [(b"copy 0", b"b" * 10)]
    assert database.motifs(b"copy 0") == (COPY,)
