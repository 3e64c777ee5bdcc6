import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_objects.state.items import ItemsOverlay, SortedItems, end_of_prefix

keys = st.binary(max_size=2) | st.sampled_from((b"\xff", b"\xff\xff", b"a\xff", b"b"))
stored = st.dictionaries(keys, st.binary(max_size=1), max_size=8)
changes = st.lists(st.tuples(keys, st.none() | st.binary(max_size=1)), max_size=100)
ranges = st.tuples(keys, st.none() | keys, st.booleans())


def overlay(items):
    return ItemsOverlay(items, lambda: None)


def change(items, plain, steps):
    for key, value in steps:
        if value is None:
            assert items.remove(key) == (plain.pop(key, None) is not None)
        else:
            items.set(key, value)
            plain[key] = value
    return plain


@given(stored, st.lists(changes, max_size=4), ranges)
def test_an_overlay_is_a_sorted_dict_over_several_calls(plain, calls, bounds):
    items, expected = SortedItems(dict(plain)), dict(plain)
    start, end, reverse = bounds
    for steps in calls:
        call = overlay(items)
        change(call, expected, steps)
        wanted = sorted(
            ((key, value) for key, value in expected.items() if key >= start and (end is None or key < end)),
            reverse=reverse,
        )
        assert list(call.range(start, end, reverse)) == wanted
        assert list(call.prefix(start)) == sorted(pair for pair in expected.items() if pair[0].startswith(start))
        assert len(call) == len(expected)
        items = call.freeze()
        assert items == expected
        assert SortedItems.of(items).order == sorted(expected)
        assert SortedItems.of(items).size == SortedItems(dict(expected)).size


@given(stored, changes)
def test_the_items_of_a_state_never_change(plain, steps):
    items = SortedItems(dict(plain))
    order = list(items.order)
    call = overlay(items)
    change(call, dict(plain), steps)
    call.freeze()
    assert items == plain
    assert items.order == order


def test_the_order_is_kept_over_a_call_with_few_changes():
    items = SortedItems({b"%05d" % number: b"" for number in range(1000)})
    assert items.changed({b"x": b""})._order is None, "nobody needed it"
    assert items.order
    few = items.changed({b"00500": None, b"005005": b"1"})
    assert few._order == sorted(few)
    assert items.changed({b"y%d" % number: b"" for number in range(100)})._order is None


def test_items_may_change_while_they_are_iterated():
    call = overlay({b"%d" % number: b"" for number in range(6)})
    seen = []
    for key, _ in call.range():
        seen.append(key)
        call.remove(b"%d" % (int(key) + 1))
        call.set(b"a" + key, b"")
    assert seen == [b"0", b"2", b"4"]


@pytest.mark.parametrize(("prefix", "end"), [
    (b"", None), (b"a", b"b"), (b"a\xff", b"b"), (b"\xff\xff", None), (b"\xfe\xff", b"\xff"),
])  # fmt: skip
def test_end_of_prefix(prefix, end):
    assert end_of_prefix(prefix) == end
