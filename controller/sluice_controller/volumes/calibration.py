"""The capacity of a pool: measured by fio on a volume that is created for it, or entered by an operator."""

from __future__ import annotations

from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.validation.bodies import Body, read_rate
from sluice_controller.volumes import ordering
from sluice_controller.volumes.cinder_access import Caller, check_node, service_cinder
from sluice_controller.volumes.ordering import new_operation
from sluice_controller.volumes.tiers import KnownPools
from sluice_core.errors import CallerError, Conflict, NotFound
from sluice_core.messages.base import MOST_RATE
from sluice_dsl.diagnostics import closest_match
from sluice_volumes import operations
from sluice_volumes.attachments import Request
from sluice_volumes.messages import CALIBRATE, FIGURES, UNDER_WAY, Pool, PoolCalibration, VolumeOperation
from sluice_volumes.pool_measurement import SPECS

#: Seconds of the measurement of each figure.
SECONDS: Final = 10
_MOST_SECONDS: Final = 300
#: GiB of the measured volume.
SIZE: Final = 1
_MOST_SIZE: Final = 1024


def measure(backend: Backend, caller: Caller, pool: str, data: Any, key: str = "") -> VolumeOperation:
    """Measure a pool by the konnector of a node, on a volume that Sluice's service user creates in it.

    :param data: ``node``, and optionally ``seconds`` for each figure and ``size`` of the volume in GiB
    :param key: the text that identifies this request; empty without one
    :raises CallerError: when the body is not valid
    :raises NotFound: when there is no such pool or node
    :raises Conflict: when the pool is measured already, or the node has no konnector
    """
    body = Body(data, "node", "seconds", "size")
    node = body.text("node")
    seconds = body.whole("seconds", 1, _MOST_SECONDS, "whole seconds") if body.has("seconds") else SECONDS
    size = body.whole("size", 1, _MOST_SIZE, "a whole number of GiB") if body.has("size") else SIZE
    cinder = service_cinder(backend)
    measured = _find_pool(backend, pool)
    if not measured.specs:
        raise Conflict(f"pool `{pool}` reports no name of its back end, so no volume type can name it")
    check_node(backend, node)
    given = {"pool": pool, "node": node, "seconds": seconds, "size": size, SPECS: dict(measured.specs)}
    operation = new_operation(backend, CALIBRATE, "", caller.name, "", given, key)
    for other in backend.store.run(operations.JOBS.read_all(backend.store.keys)).values():
        same = other.what == CALIBRATE and other.data.get("pool") == pool and other.id != operation.id
        if same and other.state == UNDER_WAY:
            raise Conflict(f"operation `{other.id}` measures pool `{pool}` already")
    return ordering.submit(backend, operation, Request(cinder))


def set_by_hand(backend: Backend, pool: str, data: Any, by: str) -> PoolCalibration:
    """Store the measured values of a pool; they override what the pool reports.

    :param data: ``read_bw``, ``write_bw``, ``read_iops``, ``write_iops``, all of them
    :raises CallerError: when the body is not valid
    :raises NotFound: when Cinder has no such pool
    """
    body = Body(data, *FIGURES)
    for name in FIGURES:
        if not body.has(name):
            raise CallerError(f"`{name}` is missing, expected all of {', '.join(FIGURES)}")
    read_bw, write_bw = (read_rate(name, body.value(name)) for name in FIGURES[:2])
    read_iops, write_iops = (body.number(name, 0.0, 1.0, MOST_RATE) for name in FIGURES[2:])
    _find_pool(backend, pool)
    found = PoolCalibration(pool, read_bw, write_bw, read_iops, write_iops, backend.now(), by=by)
    backend.store.run(operations.CALIBRATIONS.write(backend.store.keys, found))
    return found


def _find_pool(backend: Backend, name: str) -> Pool:
    """
    :raises NotFound: when Cinder has no such pool
    """
    known = KnownPools.read(backend).pools
    if name not in known:
        near = closest_match(name, known)
        raise NotFound(f"cinder has no pool `{name}`" + (f", did you mean `{near}`" if near else ""))
    return known[name]
