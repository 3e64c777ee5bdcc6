"""The decisions of a keeper while jobs run, step by step."""

from sluice_motifs.runtime import Runtime
from sluice_motifs.space.jobs import Finished
from sluice_motifs.space.keeper import SpaceConfig, SpaceKeeper
from sluice_motifs.space.one_space import PATH, OneSpace
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.templates.registry import load_templates
from sluice_motifs.testing.memory_shim import MemoryShim

SIZE = 100


class Kept:
    """A keeper of items in memory, whose jobs have no effect."""

    def __init__(self, target, items):
        self.runtime = Runtime(MemoryShim(None), LocalLeases(), load_templates())
        self.rules = OneSpace(target, "lru")
        self.begun = []
        self.keeper = SpaceKeeper(self.runtime, self.rules, self.begun.append, SpaceConfig())
        self.runtime.items.watch(self.keeper)
        self.keeper.update()
        self.runtime.items.begin_scan()
        for number in range(items):
            self.runtime.items.put(f"{number}", SIZE, expanded=True)
        self.runtime.items.finish_scan()

    def keep(self, target=None):
        if target is not None:
            self.rules.change(target, "lru")
        self.keeper.update()
        self.keeper.keep(self.keeper.spaces[PATH])

    def names(self, fills=False):
        return [job.name for job in self.begun if job.fills == fills]


def test_an_item_that_was_told_to_be_contracted_before_its_job_ended_counts_once():
    kept = Kept(target=5 * SIZE, items=10)
    kept.keep()
    assert kept.names() == ["0", "1", "2", "3", "4"]
    for name in kept.names():
        kept.runtime.items.put(name, SIZE, expanded=False)
        kept.keep()
    assert (len(kept.begun), kept.names(fills=True)) == (5, [])
    for job in kept.begun:
        kept.keeper.finish(Finished(job, "contracted"))
        kept.keep()
    assert len(kept.begun) == 5


def test_an_item_that_was_told_to_be_expanded_before_its_job_ended_counts_once():
    kept = Kept(target=0, items=8)
    kept.keep()
    for job in kept.begun:
        kept.runtime.items.put(job.name, SIZE, expanded=False)
        kept.keeper.finish(Finished(job, "contracted"))
    kept.keep(target=5 * SIZE)  # of which four items fill nine tenths
    assert kept.names(fills=True) == ["7", "6", "5", "4"]
    for name in kept.names(fills=True):
        kept.runtime.items.put(name, SIZE, expanded=True)
        kept.keep()
    kept.keep(target=6 * SIZE)
    assert kept.names(fills=True) == ["7", "6", "5", "4", "3"]


def test_an_item_at_which_somebody_works_is_not_judged_again_at_once():
    kept = Kept(target=0, items=1)
    kept.keep()
    (job,) = kept.begun
    assert kept.keeper.finish(Finished(job, "busy")) is None
    kept.keep()
    assert kept.names() == ["0", "0"]
    assert kept.keeper.finish(Finished(kept.begun[1], reason="it is a manifest")) is kept.keeper.spaces[PATH]
    kept.keep()
    assert kept.names() == ["0", "0"], "it is left alone for a while"
