import pytest

from sluice_motifs.items import ItemStatistics, ItemTable


@pytest.mark.parametrize("eager", [True, False])
def test_opens_are_counted_when_somebody_asks(eager):
    items = ItemTable(eager)
    items.put("a", 10, expanded=True)
    items.note_open("a", 5.0)
    items.note_open("a", 7.0)
    items.note_open("unknown", 8.0)
    items.note_expansion("a", 0.5)
    assert items.statistics("a") == ItemStatistics(10, True, 2, 7.0, 0.5)
    assert items.statistics("unknown") is None


def test_a_slot_is_used_again_and_begins_anew():
    items = ItemTable()
    slot = items.put("a", 10, expanded=True)
    items.note_open("a", 5.0)
    assert items.remove("a") == slot
    assert items.name(slot) is None
    assert items.put("b", 3, expanded=False) == slot
    assert (items.name(slot), len(items)) == ("b", 1)
    assert items.statistics("b") == ItemStatistics(3, False, 0, 0.0, 0.0)
