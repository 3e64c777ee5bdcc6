"""Names that workers report are forwarded once, in parts; an error loses only its own part."""

from tests.support.recordings.redis_answers import redis_away

from sluice_motifs.storage.records import ItemView, Motif, Plain
from sluice_motifs.templates.registry import load_templates
from sluice_motifs_swift.changed_objects import ChangedObjects, NewContentObserver


class Contractor:
    def __init__(self):
        self.told = []

    def contract(self, names):
        self.told.append(list(names))
        if "away" in names:
            raise redis_away()
        if "faulty" in names:
            raise ZeroDivisionError
        return len(names)


def test_changed_objects_are_handed_on_once():
    contractor = Contractor()
    changed = ChangedObjects(contractor)
    assert changed.contract_outdated() == 0
    assert contractor.told == []
    changed.note([f"{number}" for number in range(1100)])
    changed.note(["3"])
    assert (changed.contract_outdated(), changed.contract_outdated(), changed.contract_outdated()) == (1000, 100, 0)
    told = [name for names in contractor.told for name in names]
    assert sorted(told, key=int) == [f"{number}" for number in range(1100)]


def test_what_fails_does_not_keep_others_from_being_looked_at():
    contractor = Contractor()
    changed = ChangedObjects(contractor)
    changed.note(["away", "one", "faulty", "two"])
    assert changed.contract_outdated() == 2
    changed.note(f"{number}" for number in range(200_000))
    for _ in range(100):
        changed.contract_outdated()
    assert changed.contract_outdated() == 0


def test_new_content_is_a_change():
    told = []
    observer = NewContentObserver(lambda *event: None, load_templates(), told.extend)
    view = ItemView("a/c/o", Plain("1", 3, ""))
    for template, params in (
        ("concat", {"of": "a/c/1"}),
        ("url", {"source": "http://mirror.example/"}),
        ("url", {"source": "http://mirror.example/", "max_age": 60.0}),
    ):
        observer.expanded(view, Motif(template, params), 0.1)
    assert told == ["a/c/o"]


def test_without_the_change_stream_nothing_is_looked_at():
    contractor = Contractor()
    changed = ChangedObjects(contractor, used=False)
    changed.note(["one"])
    assert changed.contract_outdated() == 0
    assert contractor.told == []
