"""A mount contracts items until its target size is kept."""

import threading

import pytest

from sluice_core.errors import CallerError, Conflict
from sluice_motifs_fs import space
from sluice_motifs_fs.space import SpaceControl


class Contractions:
    """Contracts what it is told to, but for some."""

    def __init__(self, target, refused=()):
        self.done = threading.Event()
        self.names = []
        self._refused = set(refused)
        self.control = SpaceControl(target, "lru", self._contract)

    def _contract(self, name):
        if name in self._refused:
            self._refused.discard(name)
            raise Conflict(f"`{name}` is busy")
        self.names.append(name)
        self.control.put(name, 10, expanded=False)
        if self.control.usage.expanded_bytes <= 20:
            self.done.set()
        return True

    def run(self):
        self.control.start()
        try:
            assert self.done.wait(30)
        finally:
            self.control.stop()
        return self.names


def fill(control, names="abcde"):
    for name in names:
        control.put(name, 10, expanded=True)


def test_those_go_first_that_were_not_opened_for_longest():
    contractions = Contractions(20)
    fill(contractions.control)
    contractions.control.touch("a")
    assert contractions.run() == ["b", "c", "d"]
    assert contractions.control.usage.contracted_bytes == 30


def test_one_that_must_stay_is_passed_over(monkeypatch):
    monkeypatch.setattr(space, "_TRY_AGAIN", 0.01)
    contractions = Contractions(20, refused="a")
    fill(contractions.control)
    assert contractions.run() == ["b", "c", "d"]


def test_items_that_are_gone_do_not_count():
    contractions = Contractions(20)
    fill(contractions.control)
    contractions.control.remove("a")
    contractions.control.put("b", 10, expanded=False)
    fill(contractions.control, "f")
    assert contractions.run() == ["c", "d"]


@pytest.mark.parametrize(("target", "policy"), [(-1, "lru"), (0, "lrru")])
def test_what_cannot_be_kept_is_refused(target, policy):
    with pytest.raises(CallerError):
        SpaceControl(target, policy, lambda name: True)
