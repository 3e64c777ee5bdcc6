"""The file that a konnector reads has the newest shares of its machine."""

import pytest

from sluice_agent.bandwidth.shares import VolumeShareFile
from sluice_core.describe import PROXY
from sluice_core.errors import DecodeError
from sluice_core.messages.bandwidth import GET, Share, Shares


@pytest.fixture
def now():
    return [100.0]


@pytest.fixture
def kept(tmp_path, now):
    return VolumeShareFile("n1", tmp_path / "snapshot.volume-shares", lambda: now[0])


def shares(rate, term=1, number=1, node="n1"):
    return Shares(node, term, number, 1.0, (Share(PROXY, "AUTH_p", "v1", GET, 0, rate),)).encode()


def rate_in(file):
    (only,) = Shares.decode(file.read_bytes()).rows
    return only.rate


def test_the_newest_shares_are_in_the_file(kept):
    kept.receive(shares(1e6))
    kept.receive(shares(3e6, number=3))
    kept.receive(shares(2e6, number=2))
    assert rate_in(kept.file) == 3e6
    kept.receive(shares(4e6, term=2, number=1))
    assert rate_in(kept.file) == 4e6


def test_after_silence_an_earlier_term_is_accepted(kept, now):
    kept.receive(shares(1e6, term=5))
    kept.receive(shares(2e6, term=4))
    assert rate_in(kept.file) == 1e6
    now[0] += 11
    kept.receive(shares(2e6, term=4))
    assert rate_in(kept.file) == 2e6


def test_shares_of_others_and_nonsense_change_nothing(kept):
    kept.receive(shares(1e6))
    kept.receive(shares(9e6, number=2, node="n2"))
    with pytest.raises(DecodeError):
        kept.receive(b"nonsense")
    assert rate_in(kept.file) == 1e6
