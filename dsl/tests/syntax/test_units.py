"""Values with units, parsed and printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_core.describe import Parameter
from sluice_dsl.syntax.units import (
    ALL_UNITS,
    QUANTITIES,
    UnitError,
    format_value,
    read_parameter,
    read_quantity,
    read_value,
    write_value,
)

READ = [
    ("size", "512", 512), ("size", "512B", 512), ("size", "1KB", 1000), ("size", "1KiB", 1024), ("size", "1k", 1000),
    ("size", "1kB", 1000), ("size", "10M", 10_000_000), ("size", "10MB", 10_000_000), ("size", "10 MiB", 10 << 20),
    ("size", "1.5GB", 1_500_000_000), ("size", "1.1GiB", 1181116006), ("size", "2TB", 2 * 10**12),
    ("size", "2TiB", 2 << 40), ("size", "1e3", 1000), ("size", "0", 0),
    ("rate", "30MBps", 30e6), ("rate", "30MB/s", 30e6), ("rate", "30 MiB/s", 30.0 * 2**20), ("rate", "1KB/sec", 1e3),
    ("rate", "5", 5.0), ("rate", "5B/s", 5.0),
    ("duration", "500ms", 0.5), ("duration", "30", 30.0), ("duration", "30s", 30.0), ("duration", "5m", 300.0),
    ("duration", "5min", 300.0), ("duration", "2h", 7200.0), ("duration", "1d", 86400.0), ("duration", "1.5h", 5400.0),
    ("percent", "20%", 0.2), ("percent", "0.2", 0.2), ("percent", "12.5 %", 0.125),
    ("count", "10", 10.0), ("count", "3k", 3000.0), ("frequency", "3", 3.0), ("frequency", "3/s", 3.0),
    ("frequency", "3k/s", 3000.0), ("int", "-4", -4), ("float", "-2.5", -2.5), ("float", "+.5", 0.5),
    ("bool", "TRUE", True), ("bool", "off", False), ("list", "txt, log", "txt,log"), ("str", "x y", "x y"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "value"), READ)
def test_a_value_is_read_into_base_units_by_its_type(kind, text, value):
    found = read_value(text, kind)
    assert found == value
    assert type(found) is type(value)


REFUSED = [
    ("size", "10mb", "10MB"), ("size", "10Mb", "10MB"), ("size", "5m", "5M"), ("size", "10MBps", "10MB"),
    ("size", "-1", ""), ("size", "1.5", ""), ("size", "many", ""), ("size", "", ""), ("size", "99999999TB", ""),
    ("size", "1e999", ""), ("size", "1e99999", ""), ("size", "3s", ""), ("size", "NaN", ""), ("size", "inf", ""),
    ("rate", "10MB", "10MBps"), ("rate", "30Mbps", "30MBps"), ("rate", "30mbps", "30MBps"), ("rate", "-1MBps", ""),
    ("rate", "3/s", ""), ("duration", "5M", "5m"), ("duration", "5 hours", "5h"), ("duration", "20%", ""),
    ("duration", "-1s", ""), ("percent", "20pct", ""), ("count", "10MB", "10M"), ("frequency", "3MBps", "3M"),
    ("int", "1.5", ""), ("int", "4k", ""), ("float", "x", ""), ("bool", "maybe", ""), ("list", "a,,b", ""),
    ("list", "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "near_miss"), REFUSED)
def test_a_value_of_another_type_or_unit_is_refused_with_the_near_miss(kind, text, near_miss):
    with pytest.raises(UnitError) as refused:
        read_value(text, kind)
    assert refused.value.near_miss == near_miss


@given(st.integers(0, 2**63 - 1))
def test_any_size_reads_back_from_its_printed_form(size):
    assert read_value(write_value(size, "size"), "size") == size


@given(
    st.sampled_from(["rate", "duration", "percent", "count", "frequency", "float"]),
    st.floats(0, 2.0**62, allow_subnormal=False) | st.integers(0, 10**12).map(float),
)
def test_any_float_reads_back_from_its_printed_form(kind, value):
    assert read_value(write_value(value, kind), kind) == value


@pytest.mark.parametrize("quantity", QUANTITIES)
@given(number=st.integers(0, 4000), data=st.data())
def test_every_unit_multiplies_by_its_factor(quantity, number, data):
    units, _ = QUANTITIES[quantity]
    unit = data.draw(st.sampled_from(sorted(units)))
    assert read_quantity(f"{number}{unit}", quantity) == pytest.approx(float(number * units[unit]))


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("size", 65536, "64KiB"), ("size", 10_000_000, "10MB"), ("size", 512, "512B"), ("size", 0, "0B"),
        ("rate", 30e6, "30MBps"), ("duration", 90.0, "1.5min"), ("duration", 0.5, "500ms"), ("duration", 86400.0, "1d"),
        ("percent", 0.05, "5%"), ("frequency", 3.0, "3/s"), ("count", 2.5, "2.5"), ("bool", True, "true"),
    ],
)  # fmt: skip
def test_values_are_printed_as_people_write_them(kind, value, text):
    assert write_value(value, kind) == text


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("rate", 30e6, "30 MB/s"), ("rate", 30 * 2.0**20, "30 MiB/s"), ("rate", 12345678.9, "12.346 MB/s"),
        ("rate", 0.25, "0.25 B/s"), ("size", 65536, "64 KiB"), ("size", 1048577, "1048577 B"),
        ("duration", 300.0, "5 min"), ("percent", 0.2, "20%"), ("frequency", 3.0, "3/s"), ("str", "a b", "a b"),
    ],
)  # fmt: skip
def test_values_for_people_have_a_blank_before_the_unit(kind, value, text):
    assert format_value(value, kind) == text


@given(st.sampled_from(["size", "rate", "duration"]), st.integers(0, 2**62))
def test_what_people_read_can_be_written_in_a_sentence(kind, value):
    read = read_value(format_value(float(value) if kind != "size" else value, kind), kind)
    assert read == pytest.approx(value, rel=0.001 if kind == "rate" else 0)


def test_longer_units_come_first_so_that_the_grammar_takes_them_whole():
    assert [len(unit) for unit in ALL_UNITS] == sorted((len(unit) for unit in ALL_UNITS), reverse=True)


def test_choices_are_taken_in_any_case_and_ranges_are_named_with_their_unit():
    choice = Parameter("mode", "str", "", choices=("fast", "Good"))
    assert read_parameter("GOOD", choice) == "Good"
    with pytest.raises(UnitError, match="expected one of fast, Good, got `god`"):
        read_parameter("god", choice)
    for bounds, message in [
        ({"minimum": 1.0, "maximum": 60.0}, "expected 1 s to 1 min"),
        ({"minimum": 60.0}, "expected at least 1 min"),
        ({"maximum": 0.1}, "expected at most 100 ms"),
    ]:
        with pytest.raises(UnitError, match=message):
            read_parameter("500ms", Parameter("every", "duration", "", **bounds))
