"""The list of seeded faults matches the present code; `make faults` runs them."""

from pathlib import Path

import pytest
from tests.support.tool_loader import load_tool

ROOT = Path(__file__).resolve().parents[3]
TOOL = load_tool("seeded-faults")
FAULTS = TOOL.read_faults(TOOL.LIST.read_text(encoding="utf-8"))


def test_there_are_thirty():
    assert len(FAULTS) >= 30


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_has_its_place_in_the_code_and_its_tests(fault):
    assert fault.before in fault.file().read_text(encoding="utf-8")
    assert fault.before != fault.after
    assert [one for one in fault.tests if not (ROOT / one).exists()] == []


def test_a_fault_whose_place_is_gone_is_said(tmp_path):
    (tmp_path / "room" / "sluice_part").mkdir(parents=True)
    (tmp_path / "room" / "sluice_part" / "module.py").write_text("one = 1\none = 1\n")
    gone, twice = (TOOL.Fault("a", "", text, "", ()) for text in ("two", "one = 1"))
    with pytest.raises(ValueError, match="no file"):
        gone.file(tmp_path)
    with pytest.raises(ValueError, match=r"room/sluice_part/module\.py"):
        twice.file(tmp_path)
