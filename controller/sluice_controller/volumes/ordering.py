"""Operations on volumes: written, asked for, and brought to their end while somebody looks at them.

An operation is written before Cinder is asked (``sluice_volumes.operations``), and claimed by whoever works at it.
A request asks with the rights of its caller, and waits as long as it may; whoever looks at an operation later brings
it further, and so does an actor host when nobody looks.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from sluice_controller.catalog import entries
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import Page
from sluice_controller.catalog.nodes import wait_until
from sluice_controller.volumes.cinder_access import node_konnector, service_cinder
from sluice_core.errors import CallerError, Conflict, NotFound, PeerError
from sluice_core.jobs import request_id
from sluice_volumes import operations
from sluice_volumes.attachments import Request
from sluice_volumes.messages import FAILED, UNDER_WAY, VolumeOperation
from sluice_volumes.outcomes import Claim
from sluice_volumes.reconciler import OperationReconciler

#: Seconds between two looks of a request that waits.
_STEP: Final = 0.3


def new_operation(
    backend: Backend, what: str, project: str, by: str, volume: str = "", data: Mapping[str, Any] | None = None,
    key: str = "",
) -> VolumeOperation:  # fmt: skip
    """An operation that is not written yet.

    :param key: the caller's word for this request; the same request with the same word is one operation
    """
    given = dict(data or {})
    name = request_id(32, by, key, what, volume, given) if key else uuid.uuid4().hex
    return VolumeOperation(name, what, project, volume, given, created=backend.now(), by=by)


def submit(backend: Backend, operation: VolumeOperation, request: Request) -> VolumeOperation:
    """Write an operation and ask for it; the one that the same request ordered before, if it did.

    :param request: what only this request has
    :raises CallerError: when it is refused; the operation says so, too
    :raises PeerError: when nobody knows whether it was asked for; an actor host will
    """
    other = backend.store.run(operations.create_operation(backend.store.keys, operation))
    if other and other != operation.id:
        raise Conflict(f"operation `{other}` on the volume has not ended")
    if other:
        operation = find(backend, operation.id)
        if operation.step or operation.state != UNDER_WAY:
            return advance(backend, operation)
    claim = claim_operation(backend, operation)
    if claim is None:
        return find(backend, operation.id)
    try:
        outcome = reconciler(backend).ask(claim, request)
    except CallerError as error:
        claim.fail(str(error))
        raise
    except PeerError:
        claim.release()
        raise
    claim.save_outcome(outcome)
    if outcome.operation.state == FAILED:
        raise Conflict(outcome.operation.reason)
    return advance(backend, find(backend, operation.id))


def find(backend: Backend, operation_id: str) -> VolumeOperation:
    """
    :raises NotFound: when there is no such operation
    """
    job = backend.store.run(operations.JOBS.read(backend.store.keys, operation_id))
    if job is None:
        raise NotFound(f"there is no operation `{operation_id}` on a volume")
    return job


def advance(backend: Backend, operation: VolumeOperation) -> VolumeOperation:
    """Bring the operation as far as it gets; it is unchanged while another process works at it or a peer is away."""
    claim = None if backend.cinder is None else claim_operation(backend, operation)
    if claim is not None:
        claim.save_outcome(reconciler(backend).try_advance(claim.operation, claim.record))
    return find(backend, operation.id)


def claim_operation(backend: Backend, operation: VolumeOperation) -> Claim | None:
    """Claim the operation for this request; None while another process works at it."""
    if not operations.is_free(operation, backend.now()):
        return None
    claimed, write = operations.claim(backend.store.keys, operation, backend.now())
    return Claim(backend.store, backend.now, claimed) if backend.store.run(write) else None


def wait(backend: Backend, operation: VolumeOperation, seconds: float) -> VolumeOperation:
    """The operation when it has ended, or as it is ``seconds`` from now."""

    found = operation

    def ended() -> bool:
        nonlocal found
        found = advance(backend, find(backend, operation.id))
        return found.state != UNDER_WAY

    if operation.state == UNDER_WAY:
        wait_until(backend, ended, seconds, _STEP)
    return found


def page(
    backend: Backend, limit: int, marker: str, state: str, volume: str, accounts: frozenset[str] | None
) -> Page[VolumeOperation]:
    """Operations in the order in which they were ordered.

    :param accounts: whose are shown; None: everybody's
    """
    prefix = backend.config.reseller_prefix
    wanted = {
        f"{int(job.created * 1000):015d}-{job.id}": job
        for job in backend.store.run(operations.JOBS.read_all(backend.store.keys)).values()
        if state in ("", job.state)
        and volume in ("", job.volume)
        and (accounts is None or prefix + job.project in accounts)
    }
    return entries.page(wanted, limit, marker)


def reconciler(backend: Backend) -> OperationReconciler:
    """The reconciler that asks for operations and finishes them."""
    return OperationReconciler(
        service_cinder(backend),
        lambda node: node_konnector(backend, node),
        backend.config.reseller_prefix,
        backend.now,
    )
