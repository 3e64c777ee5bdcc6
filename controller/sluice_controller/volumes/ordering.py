"""Operations on volumes: written, sent to Cinder, and advanced by the requests that show them.

An operation is written before the request to Cinder (``sluice_volumes.operations``), and claimed by the process that
advances it.  A request uses the rights of its caller, and waits as long as its query allows; a later request for the
operation advances it further, and so does an actor host without any request.
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

#: Seconds between two checks of a request that waits.
_STEP: Final = 0.3


def new_operation(
    backend: Backend, what: str, project: str, by: str, volume: str = "", data: Mapping[str, Any] | None = None,
    key: str = "",
) -> VolumeOperation:  # fmt: skip
    """Make an operation that is not written yet.

    :param key: the text that identifies this request; the same request with the same text is one operation
    """
    given = dict(data or {})
    name = request_id(32, by, key, what, volume, given) if key else uuid.uuid4().hex
    return VolumeOperation(name, what, project, volume, given, created=backend.now(), by=by)


def submit(backend: Backend, operation: VolumeOperation, request: Request) -> VolumeOperation:
    """Write an operation and send it to Cinder; return the one of an earlier, identical request if there is one.

    :param request: the values of this request that are not stored
    :raises CallerError: when Cinder refuses it; the operation contains the reason, too
    :raises PeerError: when the result of the request is not known; an actor host will repeat it
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
    """Advance the operation as far as possible; unchanged if another process advances it or a peer is unreachable."""
    claim = None if backend.cinder is None else claim_operation(backend, operation)
    if claim is not None:
        claim.save_outcome(reconciler(backend).try_advance(claim.operation, claim.record))
    return find(backend, operation.id)


def claim_operation(backend: Backend, operation: VolumeOperation) -> Claim | None:
    """Claim the operation for this request; None if another process advances it."""
    if not operations.is_free(operation, backend.now()):
        return None
    claimed, write = operations.claim(backend.store.keys, operation, backend.now())
    return Claim(backend.store, backend.now, claimed) if backend.store.run(write) else None


def wait(backend: Backend, operation: VolumeOperation, seconds: float) -> VolumeOperation:
    """The operation when it has ended, or its state after ``seconds``."""

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
    """Operations in the order of their creation.

    :param accounts: the accounts whose operations are shown; None: all
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
    """The reconciler that sends operations to Cinder and finishes them."""
    return OperationReconciler(
        service_cinder(backend),
        lambda node: node_konnector(backend, node),
        backend.config.reseller_prefix,
        backend.now,
    )
