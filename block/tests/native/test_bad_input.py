"""Arguments that the filters refuse when nbdkit starts, and the errors."""

import pytest
from tests.support.block.nbd import serve

from sluice_core.errors import PeerError

pytestmark = pytest.mark.service


def refusal(folder, built, filters, *given):
    """The output of an nbdkit that does not start."""
    with (
        pytest.raises(PeerError, match="did not come up") as refused,
        serve(folder, built, filters, "memory", "1M", *given),
    ):
        pass
    return str(refused.value)


@pytest.mark.parametrize("key", ["0", "256", "-1", "blue", ""])
def test_a_key_that_is_no_byte_is_refused(tmp_path, built, key):
    assert "xor-key" in refusal(tmp_path, built, ["xor"], f"xor-key={key}")


@pytest.mark.parametrize("name", ["xor", "throttle"])
def test_a_filter_with_one_set_of_parameters_stands_in_a_chain_once(tmp_path, built, page_file, name):
    given = [f"throttle-page={page_file}"] if name == "throttle" else []
    assert f"`sluice-{name}` stands in the chain twice" in refusal(tmp_path, built, [name, name], *given)


@pytest.mark.parametrize("name", ["nop", "throttle"])
@pytest.mark.parametrize(
    ("at", "reason"), [(0, "is no page of a volume"), (8, "version 64, expected 1"), (4096, "has 4097 bytes")]
)
def test_a_file_that_is_no_page_is_refused(tmp_path, built, page_file, name, at, reason):
    data = bytearray(page_file.read_bytes().ljust(at + 1, b"\0"))
    data[at] ^= 0x41
    page_file.write_bytes(data)
    said = refusal(tmp_path, built, [name], f"{name}-page={page_file}")
    assert f"{name}-page: `{page_file}`" in said
    assert reason in said


@pytest.mark.parametrize("name", ["nop", "throttle"])
def test_a_page_that_is_not_there_is_refused(tmp_path, built, name):
    said = refusal(tmp_path, built, [name], f"{name}-page={tmp_path}/away")
    assert f"{name}-page: cannot open the page `{tmp_path}/away`: No such file" in said


def test_a_throttle_needs_its_page(tmp_path, built):
    assert "needs the parameter throttle-page" in refusal(tmp_path, built, ["throttle"])


def test_a_log_that_cannot_be_opened_is_refused(tmp_path, built, page_file):
    said = refusal(tmp_path, built, ["nop"], f"nop-page={page_file}", f"nop-log={tmp_path}/away/log")
    assert f"nop-log: cannot open `{tmp_path}/away/log`: No such file" in said
