"""The page: its layout is that of the C code, and its limits and counters are passed on."""

import subprocess

import pytest

from sluice_block.stack import page as layout
from sluice_block.stack.build import SOURCES
from sluice_block.stack.page import BUCKETS, BadPage, Histogram, Limits, Page, bucket_seconds
from sluice_core.errors import CallerError

FIELDS = {
    "magic": layout.MAGIC_AT,
    "version": layout.VERSION_AT,
    **{f"limits.{name}": layout.LIMITS_AT + 8 * number for number, name in enumerate(Limits.__slots__)},
    "log": layout.LOG_AT,
    "waited_ns": layout.WAITED_AT,
    **{
        f"counters.{name}": layout.COUNTERS_AT + 8 * number
        for number, name in enumerate(["under_way", "busy_ns", *list(layout.Counters.__slots__)[2:12]])
    },
    "counters.read_histogram": layout.READ_HISTOGRAM_AT,
    "counters.write_histogram": layout.WRITE_HISTOGRAM_AT,
    "pending": layout.PENDING_AT,
}
NUMBERS = {
    "PAGE_SIZE_BYTES": layout.SIZE,
    "PAGE_MAGIC": layout.MAGIC,
    "PAGE_VERSION": layout.VERSION,
    "HISTOGRAM_BUCKETS": BUCKETS,
    "PAGE_PENDING": layout.PENDING,
}


def compiled(folder, expressions):
    """The values of ``expressions`` in C."""
    prints = "\n".join(f'printf ("%llu\\n", (unsigned long long) ({text}));' for text in expressions)
    source = folder / "print.c"
    source.write_text(
        "#include <stddef.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        f'#include "page.h"\nint main (int argc, char **argv) {{ {prints} return 0; }}\n'
    )
    command = ["cc", "-std=gnu11", "-I", str(SOURCES), "-o", str(folder / "print"), str(source)]
    subprocess.run(command, check=True)
    told = subprocess.run([str(folder / "print")], check=True, capture_output=True, text=True).stdout
    return [int(line) for line in told.split()]


def test_every_field_lies_where_c_has_it(tmp_path):
    expressions = [f"offsetof (struct page, {name})" for name in FIELDS]
    assert dict(zip(FIELDS, compiled(tmp_path, expressions), strict=True)) == FIELDS


def test_numbers_of_the_layout_are_those_of_c(tmp_path):
    assert dict(zip(NUMBERS, compiled(tmp_path, NUMBERS), strict=True)) == NUMBERS


def test_a_latency_is_within_an_eighth_of_its_bucket(tmp_path):
    latencies = [1024 + number**5 for number in range(0, 140)]
    buckets = compiled(tmp_path, [f"histogram_bucket (UINT64_C ({ns}))" for ns in latencies])
    assert {
        ns: number
        for ns, number in zip(latencies, buckets, strict=True)
        if abs(bucket_seconds(number) * 1e9 - ns) > ns / 8
    } == {}


@pytest.mark.parametrize(("ns", "bucket"), [(0, 0), (1023, 0), (2**36 - 1, BUCKETS - 2), (2**36, BUCKETS - 1)])
def test_latencies_at_the_borders_have_a_bucket(tmp_path, ns, bucket):
    assert compiled(tmp_path, [f"histogram_bucket (UINT64_C ({ns}))"]) == [bucket]


def test_quantiles_are_of_what_came_between_two_readings():
    earlier = Histogram((1000,) + (0,) * (BUCKETS - 1))
    later = list(earlier.buckets)
    later[10], later[50] = 98, 2
    between = Histogram(tuple(later)) - earlier
    # the first reading's 1000 are lost with `later[0]` unchanged
    assert (between.quantile(0.5), between.quantile(0.99)) == (bucket_seconds(10), bucket_seconds(50))
    assert (earlier - earlier).quantile(0.5) is None


def test_limits_are_read_by_who_opens_the_page_later(page_file, page):
    limits = Limits(1, 2, 3, 4, 5, 2**64 - 1)
    page.set_limits(limits)
    other = Page.open(page_file)
    assert other.limits() == limits
    other.close()


@pytest.mark.parametrize("wrong", [-1, 2**64])
def test_a_limit_out_of_range_changes_nothing(page, wrong):
    page.set_limits(Limits(read_bytes=7))
    with pytest.raises(CallerError, match=rf"the limit both_ops is `{wrong}`"):
        page.set_limits(Limits(read_bytes=8, both_ops=wrong))
    assert page.limits() == Limits(read_bytes=7)


def test_a_page_is_not_made_over_another(page_file, page):
    page.set_limits(Limits(read_bytes=7))
    with pytest.raises(FileExistsError):
        Page.create(page_file)
    assert page.limits() == Limits(read_bytes=7)
    assert [file.name for file in page_file.parent.iterdir()] == [page_file.name]


def damaged(file, kind):
    """A file that is not a valid page any more."""
    data = bytearray(file.read_bytes())
    if kind == "size":
        data += b"\0"
    else:
        data[{"magic": 0, "version": 8}[kind]] ^= 0x41
    file.write_bytes(data)
    return file


@pytest.mark.parametrize(
    ("kind", "reason"), [("size", "4097 bytes"), ("magic", "no page"), ("version", "version 64, expected 1")]
)
def test_a_file_that_is_no_page_is_refused(page_file, kind, reason):
    with pytest.raises(BadPage, match=reason):
        Page.open(damaged(page_file, kind))
