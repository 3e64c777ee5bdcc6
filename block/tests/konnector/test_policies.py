"""Policies at volumes: applied at once, and kept until a change is read."""

from dataclasses import dataclass, field, replace

import pytest
from tests.support.block.verified_load import VerifiedLoad

from sluice_block.datapath.records import VolumeLimits
from sluice_block.konnector.policies import Policies, VolumeShares, read_policy
from sluice_block.stack.page import Limits, Page
from sluice_core.describe import FILTER, PROXY, THROTTLE
from sluice_core.messages.bandwidth import VOLUME_SHARES_SUFFIX, Share, Shares
from sluice_core.resolve import Candidates
from sluice_core.testing import assignment
from sluice_volumes.messages import StackStep

pytestmark = pytest.mark.service
READAHEAD = StackStep("readahead")


@dataclass
class FakeSnapshot:
    """``said`` applies to every volume."""

    said: Candidates = field(default_factory=lambda: Candidates(()))
    snapshot_id: str = "generation"
    problem: str = ""

    def refresh(self):
        pass

    def find_volume(self, account, volume):
        return self.said if not self.problem else Candidates(())

    def say(self, *assignments):
        self.said = Candidates(assignments)


@pytest.fixture
def snapshot():
    return FakeSnapshot()


@pytest.fixture
def shares(tmp_path):
    return VolumeShares(tmp_path / "snapshot")


@pytest.fixture
def policies(machine, snapshot, shares):
    made = Policies(machine.konnector, snapshot, shares)
    yield made
    made.wait()


def share(tmp_path, volume, **rates):
    """Write a share as an agent does."""
    rows = [Share(PROXY, "AUTH_acme", volume, method, 0, rate) for method, rate in rates.items()]
    file = tmp_path / f"snapshot{VOLUME_SHARES_SUFFIX}"
    fresh = file.with_suffix(".new")
    fresh.write_bytes(Shares("n1", 1, 1, 1.0, tuple(rows)).encode())
    fresh.replace(file)


def said(kind, keyword, number=0, **params):
    return assignment(f"p.{number}", "AUTH_acme", keyword, kind, params=params)


def throttling(**params):
    return said(THROTTLE, "throttling", **params)


def in_force(volume):
    page = Page.open(volume.folder / "page")
    try:
        return page.limits()
    finally:
        page.close()


def test_a_rate_of_a_policy_replaces_that_one_set_by_hand_and_goes_with_it(machine, snapshot, policies):
    volume = machine.attach(account="AUTH_acme", limits=VolumeLimits(max_bw=5e6, max_iops=100.0))
    snapshot.say(throttling(max_bw=3e6, write_iops=7.0))
    policies.obey()
    assert in_force(volume) == Limits(both_bytes=3_000_000, both_ops=100, write_ops=7)
    machine.konnector.set_limits(volume.attachment.volume, VolumeLimits(max_bw=9e6, read_iops=4.0))
    assert in_force(volume) == Limits(both_bytes=3_000_000, write_ops=7, read_ops=4)
    snapshot.say()
    policies.obey()
    assert in_force(volume) == Limits(both_bytes=9_000_000, read_ops=4)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_rate_stays_while_the_snapshot_cannot_be_read_and_over_a_restart(machine, snapshot, policies, restarted):
    volume = machine.attach(account="AUTH_acme")
    snapshot.say(throttling(max_bw=3e6))
    policies.obey()
    snapshot.problem = "no snapshot opened yet"
    if restarted:
        for one in machine.konnector.volumes():
            one.halt()  # as a machine does
        machine.start()
        policies = Policies(machine.konnector, snapshot, VolumeShares(machine.folder / "none"))
        (volume,) = machine.konnector.volumes()
    policies.obey()
    assert in_force(volume) == Limits(both_bytes=3_000_000)
    snapshot.problem = ""
    snapshot.say()
    policies.obey()
    assert in_force(volume) == Limits()


def test_a_share_of_its_pool_bounds_what_limits_leave(machine, snapshot, policies, tmp_path):
    volume = machine.attach(account="AUTH_acme")
    snapshot.say(throttling(read_bw=3e6))
    share(tmp_path, volume.attachment.volume, GET=8e6, PUT=2e6)
    policies.obey()
    assert in_force(volume) == Limits(read_bytes=3_000_000, write_bytes=2_000_000)
    share(tmp_path, volume.attachment.volume, GET=1e6, PUT=-1.0)
    policies.obey()
    assert in_force(volume) == Limits(read_bytes=1_000_000)
    (tmp_path / f"snapshot{VOLUME_SHARES_SUFFIX}").write_bytes(b"nonsense")
    policies.obey()
    assert in_force(volume) == Limits(read_bytes=1_000_000)
    share(tmp_path, "another")
    policies.obey()
    assert in_force(volume) == Limits(read_bytes=3_000_000)


def test_a_volume_whose_account_is_not_known_obeys_nobody(machine, snapshot, policies):
    volume = machine.attach()
    snapshot.say(throttling(max_bw=3e6))
    policies.obey()
    assert in_force(volume) == Limits()


def test_a_filter_of_a_policy_stands_before_the_others_and_comes_and_goes_under_load(machine, snapshot, policies):
    xor = StackStep("xor", {"key": 7})
    volume = machine.attach(account="AUTH_acme", stack=(xor,))
    with VerifiedLoad(volume.device()) as load:
        load.wait_for(100)
        snapshot.say(said(FILTER, "readahead"))
        policies.obey()
        policies.wait()
        assert volume.attachment.steps() == (READAHEAD, xor)
        load.wait_for(100)
        machine.konnector.replace_stack(volume.attachment.volume, (StackStep("nop"), xor))
        assert volume.attachment.steps() == (READAHEAD, StackStep("nop"), xor)
        snapshot.say()
        policies.obey()
        policies.wait()
        load.wait_for(100)
    assert volume.attachment.steps() == (StackStep("nop"), xor)


def test_a_filter_that_stands_in_the_stack_already_is_not_added(machine, snapshot, policies):
    volume = machine.attach(account="AUTH_acme", stack=(READAHEAD,))
    before = volume.stack.process()
    snapshot.say(said(FILTER, "readahead"))
    policies.obey()
    policies.wait()
    assert volume.stack.process() == before


def test_a_stack_that_does_not_start_is_tried_again_and_rates_hold_meanwhile(machine, snapshot, policies):
    volume = machine.attach(account="AUTH_acme")
    source = machine.folder / f"{volume.attachment.volume}.img"
    source.rename(source.with_suffix(".away"))
    snapshot.say(said(FILTER, "readahead"), throttling(max_bw=3e6))
    for _ in range(2):
        policies.obey()
        policies.wait()
    assert in_force(volume) == Limits(both_bytes=3_000_000)
    assert volume.attachment.steps() == ()
    source.with_suffix(".away").rename(source)
    policies._failed.clear()  # as after some seconds
    policies.obey()
    policies.wait()
    assert volume.attachment.steps() == (READAHEAD,)


def test_what_changes_content_and_what_nobody_knows_is_left_to_the_controller():
    found = read_policy(
        Candidates(
            [
                said(FILTER, "encryption", 1),
                said(FILTER, "xor", 2, key=7),
                said(FILTER, "compression", 3),
                said(FILTER, "readahead", 4, window=3),
                said(FILTER, "nop", 5),
                replace(throttling(max_bw=float("nan"), max_iops=-1, read_bw="3MB", read_iops=3), id="p.6"),
            ]
        )
    )
    assert found.stack == (StackStep("nop"),)
    assert found.limits == VolumeLimits(read_iops=3.0)
