"""The driver's page documents its options, and shows a configuration that the driver reads."""

import re
from pathlib import Path

import pytest

from sluice_block.cinder_nbd.options import OPTIONS
from sluice_block.cinder_nbd.pools import parse_pools

PAGE = (Path(__file__).parents[3] / "docs" / "admin" / "volumes" / "driver.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", [option.name for option in OPTIONS])
def test_every_option_is_explained(option):
    assert f"\n| `{option}` |" in PAGE


def test_the_example_has_pools_that_can_be_read():
    lines = re.findall(r"^sluice_nbd_pool = (.*)$", PAGE, re.MULTILINE)
    assert set(parse_pools(lines, Path("/srv/volumes"), "nbd")) == {"fast", "slow"}
    shown = set(re.findall(r"^(sluice_nbd_\w+) = ", PAGE, re.MULTILINE))
    assert shown <= {option.name for option in OPTIONS}
