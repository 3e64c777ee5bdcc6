"""Readers, writers and contraction at once: every value that is read is that of a source at a moment meanwhile."""

import contextlib
import threading

from sluice_motifs.api import NotContractible
from sluice_motifs.contraction.preparation import TRUST
from sluice_motifs.storage.records import Motif
from sluice_motifs.testing.shim_suite import ShiftedCopy, shifted

KEYS = [b"copy %d" % number for number in range(6)]
SOURCES = [b"source %d" % number for number in range(3)]
ROUNDS = 150


class CountedCopy(ShiftedCopy):
    """Counts its expansions, each of which waits for the test."""

    made = 0
    waiting = threading.Barrier(1)

    def expand(self, call):
        CountedCopy.made += 1
        self.waiting.wait(60)
        yield from super().expand(call)


def run(*functions):
    """Run all functions at once; raise the error of any."""
    errors = []

    def guarded(function):
        try:
            function()
        except Exception as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def content(source, number):
    """The value of a source after this many writes: each different, and of another length."""
    return b"%s %06d " % (source, number) + b"x" * (number % 7)


def motif(source):
    return Motif("shifted_copy", {"of": source.decode()})


def test_readers_get_what_sources_were_while_they_read(open_database):
    database = open_database(limit=60)
    written = dict.fromkeys(SOURCES, 0)
    for source in SOURCES:
        database.put(source, content(source, 0))
    for key, source in zip(KEYS, SOURCES * 2, strict=True):
        database.get_or_make(key, motif(source))
    stop = threading.Event()

    def write():
        for number in range(1, ROUNDS):
            for source in SOURCES:
                written[source] = number  # before it is written: the latest that may be read
                database.put(source, content(source, number))
        stop.set()

    def read(shift):
        position = 0
        while not stop.is_set():
            position += 1
            key, source = list(zip(KEYS, SOURCES * 2, strict=True))[(position + shift) % len(KEYS)]
            first = max(0, written[source] - 1)
            value = database.get(key)
            assert value in [shifted(content(source, number)) for number in range(first, written[source] + 1)]

    def contract():
        while not stop.is_set():
            for key in KEYS:
                with contextlib.suppress(NotContractible):  # its source has changed
                    database.contract(key, TRUST)

    def resize():
        while not stop.is_set():
            for limit in (0, 20, 60, None, 200):
                database.set_limit(limit)

    run(write, lambda: read(0), lambda: read(1), lambda: read(2), contract, resize)
    for key, source in zip(KEYS, SOURCES * 2, strict=True):
        assert database.get(key) == shifted(content(source, ROUNDS - 1))
    database.set_limit(60)
    assert database.statistics().used <= 60


def test_a_snapshot_stays_as_it_is_while_values_are_contracted_and_written(open_database):
    database = open_database(limit=40)
    for source in SOURCES:
        database.put(source, content(source, 0))
    for key, source in zip(KEYS, SOURCES * 2, strict=True):
        database.get_or_make(key, motif(source))
    before = list(database)
    snapshot = database.snapshot()
    stop = threading.Event()

    def write():
        for number in range(1, ROUNDS):
            for source in SOURCES:
                database.put(source, content(source, number))
            for key in KEYS:
                database.get(key)
        stop.set()

    def read():
        while not stop.is_set():
            assert list(snapshot) == before

    run(write, read, read)


def test_many_readers_of_one_value_share_one_expansion(open_database):
    CountedCopy.waiting = threading.Barrier(1)
    database = open_database(templates=[CountedCopy])
    database.put(b"source", b"abc")
    database.get_or_make(b"key", motif(b"source"))
    database.contract(b"key")
    CountedCopy.made, CountedCopy.waiting = 0, threading.Barrier(2)
    answers = []
    readers = [threading.Thread(target=lambda: answers.append(database.get(b"key"))) for _ in range(8)]
    for reader in readers:
        reader.start()
    CountedCopy.waiting.wait(60)
    for reader in readers:
        reader.join()
    assert (answers, CountedCopy.made) == ([b"bcd"] * 8, 1)
