"""Percentages in conditions: saved shares in place of ratios, and conditions without a meaning for percentages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_core.describe import MetricInfo
from sluice_dsl.compile import compile_text
from sluice_dsl.diagnostics import PolicyErrors
from sluice_dsl.syntax.units import UnitError, read_quantity, write_value
from sluice_dsl.testing import make_catalogue

COMPRESSIBILITY = MetricInfo("COMPRESSIBILITY", "ratio", "how well uploads compress", ("tenant", "container"))
KNOWN = make_catalogue()
CATALOGUE = make_catalogue(metrics={**KNOWN.metrics, "COMPRESSIBILITY": COMPRESSIBILITY})


def condition(text):
    compiled = compile_text(f"FOR TENANT acme WHEN {text} DO SET compression", CATALOGUE)
    return compiled[0].plan.condition


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("COMPRESSIBILITY > 2", ["metric", "COMPRESSIBILITY", ">", 2.0]),
        ("COMPRESSIBILITY > 50%", ["metric", "COMPRESSIBILITY", ">", 2.0]),
        ("COMPRESSIBILITY >= 75 %", ["metric", "COMPRESSIBILITY", ">=", 4.0]),
        ("NOT COMPRESSIBILITY < 20%", ["metric", "COMPRESSIBILITY", ">=", 1.25]),
        ("COMPRESSIBILITY <= 0%", ["metric", "COMPRESSIBILITY", "<=", 1.0]),
        ("ERRORS > 5%", ["metric", "ERRORS", ">", 0.05]),
    ],
)
def test_a_percentage_is_a_share_and_reads_naturally(text, meaning):
    assert condition(text) == meaning


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PUTS_SEC > 5%", "expected a number per second such as 3 or 3/s, got `5%`"),
        ("ACTIVE_REQUESTS > 5%", "expected a number such as 10 or 3k, got `5%`"),
        ("THROUGHPUT > 5 %", "expected a rate such as 30MBps or 1MiB/s, got"),
        ("STORED > 50%", "expected a size such as 512, 64KiB or 10MB, got `50%`"),
        ("LATENCY > 50%", "expected a duration such as"),
        ("OBJECT_SIZE > 50%", "expected a size such as"),
        ("COMPRESSIBILITY > 100%", "expected a share saved from 0% to below 100%, got `100%`"),
        ("COMPRESSIBILITY > 2MB", "expected a ratio such as 2, or the share saved such as 50%, got `2MB`"),
    ],
)
def test_a_percentage_of_what_has_no_share_is_refused(text, message):
    with pytest.raises(PolicyErrors) as refused:
        condition(text)
    assert message in str(refused.value)


@given(st.integers(0, 9998), st.integers(0, 9998))
def test_a_larger_share_is_a_larger_ratio_that_saves_it(one, other):
    shares = [f"{number / 100:.2f}%" for number in (one, other)]
    ratios = [read_quantity(text, "ratio") for text in shares]
    assert (one < other) == (ratios[0] < ratios[1])
    for number, ratio in zip((one, other), ratios, strict=True):
        assert 1 - 1 / ratio == pytest.approx(number / 10_000, abs=1e-9)


@given(st.floats(0, 1e9))
def test_a_ratio_reads_back_from_its_printed_form(value):
    assert read_quantity(write_value(value, "ratio"), "ratio") == value


@pytest.mark.parametrize("text", ["-5%", "100%", "1e9%", "99.99999999999999999999%", "-2"])
def test_a_share_that_cannot_be_saved_is_refused(text):
    with pytest.raises(UnitError):
        read_quantity(text, "ratio")
