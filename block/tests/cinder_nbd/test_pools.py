"""Pools from the option's lines, and their content."""

from pathlib import Path

import pytest

from sluice_block.cinder_nbd.options import port_range
from sluice_block.cinder_nbd.pools import GIB, Pool, parse_pools

ROOT = Path("/volumes")


def test_a_line_names_a_pool_its_folder_its_capacity_and_its_capabilities():
    lines = ["fast folder=ssd capacity=100 sluice:resiliency=none sluice:fabric=nbd", "slow"]
    assert parse_pools(lines, ROOT, "nbd") == {
        "fast": Pool("fast", ROOT / "ssd", 100 * GIB, {"sluice:resiliency": "none", "sluice:fabric": "nbd"}),
        "slow": Pool("slow", ROOT / "slow"),
    }


def test_without_a_line_the_folder_itself_is_the_pool():
    assert parse_pools([], ROOT, "nbd") == {"nbd": Pool("nbd", ROOT)}


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([""], "pool is called ``"),
        (["../x"], "pool is called `../x`"),
        (["a folder=../b"], "folder of pool `a` is `../b`"),
        (["a", "a"], "pool `a` is there twice"),
        (["a folder=x", "b folder=x"], "pools `a` and `b` share the folder"),
        (["a capacity=0"], "capacity of pool `a` is `0`, expected a number of GiB"),
        (["a capacity=-1"], "capacity of pool `a` is `-1`"),
        (["a sluice:resiliency"], "pool `a` has `sluice:resiliency`, expected key=value"),
        (["a x:y:z=1"], "pool `a` has `x:y:z=1`"),
        (["a x=1 x=2"], "pool `a` has `x` twice"),
        (["a free_capacity_gb=9"], "`free_capacity_gb`, which the driver itself reports"),
    ],
)
def test_what_a_line_cannot_say_is_named(lines, text):
    with pytest.raises(ValueError, match=text.replace("(", r"\(")):
        parse_pools(lines, ROOT, "nbd")


def test_capabilities_are_reported_flat_and_as_the_scheduler_looks_for_them():
    pool = Pool("a", ROOT, None, {"sluice:fabric": "nbd", "sluice:iops": "9", "disk": "ssd"})
    assert pool.reported_capabilities() == {
        "sluice:fabric": "nbd",
        "sluice:iops": "9",
        "disk": "ssd",
        "sluice": {"fabric": "nbd", "iops": "9"},
    }


def test_a_configured_capacity_counts_what_files_occupy_and_what_they_promise(tmp_path):
    (tmp_path / "full").write_bytes(b"x" * 8192)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 20)
    usage = Pool("a", tmp_path, 100_000).usage()
    assert (usage.total, usage.provisioned) == (100_000, 8192 + (1 << 20))
    assert usage.free == 100_000 - 8192
    assert Pool("a", tmp_path, 4096).usage().free == 0


@pytest.mark.parametrize("text", ["", "5", "9-8", "0-5", "1-65536", "a-b", "1-2-3"])
def test_a_range_of_ports_has_a_first_and_a_last(text):
    assert port_range("61000-61001") == range(61000, 61002)
    with pytest.raises(ValueError, match="expected FIRST-LAST"):
        port_range(text)
