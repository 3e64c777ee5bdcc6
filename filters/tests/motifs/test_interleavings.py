"""The runtime of motifs beside clients in random order, and proof that the test would find a broken protocol."""

import dataclasses
import gc
import logging
import os

import pytest
from tests.support.simulation import motif_interleavings
from tests.support.simulation.motif_interleavings import LosableLeases, Violation, run

from sluice_motifs.contraction import contractor, copies
from sluice_motifs.dependencies import attachment_checks, availability, source_changes
from sluice_motifs.dependencies.freshness import Freshness
from sluice_motifs.expansion import expander
from sluice_motifs.storage.leases import HeldLeases
from sluice_motifs.storage.shim import Lease
from sluice_motifs.testing.memory_shim import MemoryShim

#: Interleavings that are tried; a million before a release.
COUNT = int(os.environ.get("SLUICE_MOTIF_INTERLEAVINGS", "2000"))
#: Within so many each broken protocol is found.
ENOUGH = 20_000


@pytest.fixture(autouse=True)
def _quiet():
    """Expansions that fail are what clients provoke here."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def test_nothing_is_stale_or_lost_in_any_order():
    try_interleavings(COUNT)


def try_interleavings(count):
    for seed in range(count):
        run(seed)


def versions_are_not_compared(patch):
    look = Freshness.look

    def never_stale(self, view):
        state = look(self, view)
        return type(state)(state.versions, frozenset(), state.gone, state.closure)

    patch.setattr(Freshness, "look", never_stale)


def the_storage_takes_late_writes(patch):
    store = MemoryShim._store

    def without_comparison(self, name, data):
        before = self._states.get(name)
        if before is not None and before.data.timestamp >= data.timestamp:
            time, offset = before.data.timestamp
            data = type(data)((time, offset + 1), data.plain, data.content, data.metadata, data.kept)
        return store(self, name, data)

    patch.setattr(MemoryShim, "_store", without_comparison)


def new_content_has_the_time_of_now(patch):
    successor = MemoryShim._successor

    def of_now(self, state, record, multiples=1):
        data = successor(self, state, record, multiples)
        return dataclasses.replace(data, timestamp=(self._tick(), 0)) if multiples > 1 else data

    patch.setattr(MemoryShim, "_successor", of_now)


def what_a_late_client_read_is_not_compared(patch):
    made_from = attachment_checks.made_from

    def as_they_are_now(item, motif, *others):
        return made_from(item, dataclasses.replace(motif, versions=()), *others)

    patch.setattr(attachment_checks, "made_from", as_they_are_now)


def bytes_are_not_proven(patch):
    patch.setattr(expander, "proven", lambda pieces, view: pieces)


def contractions_hold_no_support(patch):
    class OneLease(HeldLeases):
        """Says that it holds all, and holds the first."""

        items = frozenset(name for scene in motif_interleavings.SCENES for name in scene)

        def acquire(self, items):
            return bool(self._held) or super().acquire(items)

    patch.setattr(contractor, "HeldLeases", OneLease)


def leases_exclude_nobody(patch):
    patch.setattr(LosableLeases, "acquire", lambda self, item: Lease(item, 1))
    patch.setattr(LosableLeases, "renew", lambda self, lease: True)


def sources_change_without_waiting(patch):
    patch.setattr(source_changes.SourceChanges, "_needing", lambda self, name: [])


def preserving_items_stand_on_derived_ones(patch):
    patch.setattr(availability._Search, "_changes", lambda self, source, preserved: "")


def copies_are_removed_that_items_need(patch):
    patch.setattr(copies.CopySweeper, "_needs", lambda self, item, copy: False)


# streams of operations that a violation cut off are closed by the garbage collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize(
    "broken",
    [
        versions_are_not_compared,
        the_storage_takes_late_writes,
        new_content_has_the_time_of_now,
        what_a_late_client_read_is_not_compared,
        bytes_are_not_proven,
        contractions_hold_no_support,
        leases_exclude_nobody,
        sources_change_without_waiting,
        preserving_items_stand_on_derived_ones,
        copies_are_removed_that_items_need,
    ],
)
def test_a_broken_protocol_is_found(broken, monkeypatch):
    broken(monkeypatch)
    try:
        try_interleavings(ENOUGH)
    except Violation:
        pass
    else:
        pytest.fail("not found")
    gc.collect()  # here, where its warnings are expected
