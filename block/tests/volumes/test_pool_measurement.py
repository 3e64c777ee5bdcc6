"""A pool is measured, and in every case no object of it stays in Cinder or at the konnector."""

from contextlib import suppress
from dataclasses import replace

import pytest

from sluice_core.errors import CallerError, Conflict, PeerError
from sluice_volumes.cinder.records import IN_USE
from sluice_volumes.messages import CALIBRATE, DONE, FAILED, UNDER_WAY, Pool, PoolCalibration, VolumeOperation
from sluice_volumes.reconciler import OperationReconciler
from sluice_volumes.testing.fake_cinder import DEFAULT_TYPE, FakeCinder
from sluice_volumes.testing.fake_konnector import FakeKonnector

SPECS = {"volume_backend_name": "nbd", "pool_name": "fast"}
OTHER = Pool("h@rbd#safe", 1e12, 1e12, specs={"volume_backend_name": "rbd"})
POOL = Pool("h@nbd#fast", 1e12, 1e12, specs=SPECS)
FIGURES = {"read_bw": 9e7, "write_bw": 8e7, "read_iops": 9000.0, "write_iops": 7000.0}


class Order:
    """A measurement of :data:`POOL` that is advanced until it has ended."""

    def __init__(self, *pools):
        self.cinder = FakeCinder(*pools)
        self.konnector = FakeKonnector()
        self.finisher = OperationReconciler(self.cinder, {"n1": self.konnector}.__getitem__, "AUTH_", lambda: 100.0)
        data = {"pool": POOL.name, "node": "n1", "seconds": 5, "size": 2, "specs": SPECS}
        self.operation = VolumeOperation("o1", CALIBRATE, "", data=data, by="root")
        self.steps, self.kept = [], []

    def look(self):
        """Advance it once, and keep the outcome."""
        outcome = self.finisher.advance(self.operation, None)
        self.operation = outcome.operation
        self.steps.append(self.operation.step)
        self.kept += [outcome.calibration] if outcome.calibration else []
        return self.operation

    def end(self):
        """Return the ended operation."""
        for _ in range(30):
            if self.operation.state != UNDER_WAY:
                return self.operation
            with suppress(PeerError):
                self.look()
        raise AssertionError(self.operation)

    def until(self, step):
        while self.operation.step != step:
            self.look()

    def leftovers(self):
        state = self.cinder.state
        return [*state.volumes, *state.attachments, *(state.types.keys() - {DEFAULT_TYPE.id}), *self.konnector.volumes]


@pytest.fixture
def order():
    return Order(OTHER, POOL)


def test_a_pool_is_measured_and_what_it_took_is_gone(order):
    order.until("measuring")
    (wanted,) = order.konnector.volumes.values()
    assert "account" not in wanted, "policies would concern it"
    assert (wanted["stack"], wanted["measured"]) == ([], 5)
    (volume,) = order.cinder.state.volumes.values()
    assert (volume.pool, volume.size, volume.status) == (POOL.name, 2, IN_USE)
    found = order.end()
    assert (found.state, found.reason, order.leftovers()) == (DONE, "", [])
    assert found.data == {"pool": POOL.name, "node": "n1", "seconds": 5, "size": 2, "attached_volumes": 0, **FIGURES}
    assert order.kept == [PoolCalibration(POOL.name, **FIGURES, at=100.0, node="n1", by="root")]


def test_other_attached_volumes_of_the_pool_are_counted(order):
    for pool, status in ((POOL.name, IN_USE), (POOL.name, "available"), (OTHER.name, IN_USE)):
        made = order.cinder.create_volume(1, "data", "", {})
        order.cinder.state.volumes[made.id] = replace(made, pool=pool, status=status)
    order.until("attached")
    assert order.operation.data["attached_volumes"] == 1


@pytest.mark.parametrize("lost", range(9))
def test_a_crash_after_any_step_leaves_nothing(order, lost):
    """The work of one step is done, and the write of its result is lost."""
    for _ in range(lost):
        if order.operation.state == UNDER_WAY:
            order.look()
    order.finisher.advance(order.operation, None)
    found = order.end()
    assert order.leftovers() == []
    assert found.state == (FAILED if "interrupted" in found.reason else DONE)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("method", ["attach", "measure", "measurement", "detach", "connector"])
def test_a_konnector_that_is_away_for_a_moment_leaves_nothing(order, method, late):
    order.konnector.late = late
    order.konnector.faults[method] = PeerError("away")
    found = order.end()
    assert order.leftovers() == []
    assert found.state == (FAILED if method == "attach" else DONE), found.reason


@pytest.mark.parametrize("method", ["create_type", "create_volume", "attach", "complete_attachment"])
def test_what_cinder_refuses_ends_the_measurement_and_leaves_nothing(order, method):
    order.cinder.state.faults[method] = CallerError("no room")
    found = order.end()
    assert (found.state, found.reason, order.leftovers(), order.kept) == (FAILED, "no room", [], [])


@pytest.mark.parametrize(
    "method", ["create_type", "create_volume", "delete_attachment", "delete_volume", "delete_type"]
)
def test_a_cinder_that_is_away_for_a_moment_is_asked_again(order, method):
    order.cinder.state.faults[method] = PeerError("away")
    assert (order.end().state, order.leftovers()) == (DONE, [])


def test_a_machine_without_fio_ends_the_measurement_with_its_reason(order):
    order.konnector.faults["measure"] = Conflict("`fio` is not on this machine")
    found = order.end()
    assert (found.state, found.reason, order.leftovers()) == (FAILED, "`fio` is not on this machine", [])


def test_a_konnector_that_started_again_has_measured_nothing(order):
    order.until("measuring")
    for one in order.konnector.volumes.values():
        del one["measured"]
    found = order.end()
    assert "was started again while it measured" in found.reason
    assert (found.state, order.leftovers(), order.kept) == (FAILED, [], [])


@pytest.mark.parametrize("figure", [0, -1.0, None, float("nan"), "many"])
def test_what_is_no_figure_is_not_kept(order, figure):
    order.konnector.figures = {**FIGURES, "read_iops": figure}
    found = order.end()
    assert "`read_iops`" in found.reason
    assert (found.state, order.leftovers(), order.kept) == (FAILED, [], [])


def test_another_pool_of_the_same_names_is_not_measured():
    order = Order(replace(POOL, name="h2@nbd#fast"), POOL)
    found = order.end()
    assert "`h2@nbd#fast`" in found.reason
    assert (found.state, order.leftovers()) == (FAILED, [])


def test_a_volume_that_cinder_cannot_delete_is_named_and_the_figures_are_kept(order):
    order.until("clearing")
    (volume,) = order.cinder.state.volumes.values()
    order.look()
    order.cinder.state.volumes[volume.id] = replace(order.cinder.volume(volume.id), status="error_deleting")
    found = order.end()
    assert f"`{volume.id}` is `error_deleting`" in found.reason
    assert (found.state, found.data["read_bw"], len(order.kept)) == (FAILED, 9e7, 1)


def test_a_volume_of_the_callers_that_only_claims_to_be_ours_is_left_alone(order):
    theirs = order.cinder.as_caller("t", "p1").create_volume(1, "a", "", {"sluice_operation": "o1"})
    order.end()
    assert order.leftovers() == [theirs.id]
