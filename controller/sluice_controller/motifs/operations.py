"""Expansions of all objects of an account, a container or the cluster: ordered here, done by daemons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from sluice_controller.catalog import entries
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import Page
from sluice_controller.catalog.nodes import wait_until
from sluice_controller.catalog.vocabulary import account_of
from sluice_controller.validation.bodies import Body
from sluice_core.errors import CallerError, Conflict, NotFound, PeerError
from sluice_core.jobs import new_job_id
from sluice_motif_control.messages import CANCELLED, MotifOperation
from sluice_motif_control.operations import JOBS, cancel_operation, create_operation, forget_operations

#: Operations that have not ended; more are refused.
MOST_UNDER_WAY: Final = 100


def create(backend: Backend, data: Any, by: str) -> MotifOperation:
    """Order an expansion.

    :raises CallerError: when the body makes no sense
    :raises Conflict: when too many have not ended
    :raises PeerError: when no daemon runs
    """
    body = Body(data, "account", "container")
    account, container = body.text("account", ""), body.text("container", "")
    if container and not account:
        raise CallerError("`container` is given without `account`, expected both")
    if "/" in container:
        raise CallerError(f"`container` is `{container}`, expected a name without a slash")
    if backend.motifs is None or not backend.motifs.daemons():
        raise PeerError("motifs: no daemon `sluice-motifs` runs")
    keys = backend.store.keys
    known = backend.store.run(JOBS.read_all(keys))
    if sum(not one.ended for one in known.values()) >= MOST_UNDER_WAY:
        raise Conflict(f"{MOST_UNDER_WAY} operations have not ended, wait for one of them or cancel it")
    now = backend.now()
    found = account_of(backend.native, account) if account else ""
    made = MotifOperation(new_job_id(int(now * 1000)), found, container, created=now, by=by)
    backend.store.run(create_operation(keys, made))
    backend.store.run(forget_operations(keys, known))
    return made


def page(backend: Backend, limit: int, marker: str, state: str) -> Page[MotifOperation]:
    """Operations, oldest first."""
    known = backend.store.run(JOBS.read_all(backend.store.keys))
    return entries.page({name: one for name, one in known.items() if state in ("", one.state)}, limit, marker)


def find(backend: Backend, operation_id: str, seconds: float = 0.0) -> MotifOperation:
    """An operation, when it has ended or so many seconds are over.

    :raises NotFound: when there is none
    """
    wait_until(backend, lambda: bool(_find(backend, operation_id).ended), seconds, 0.2)
    return _find(backend, operation_id)


def cancel(backend: Backend, operation_id: str) -> MotifOperation:
    """End an operation early; what was expanded stays so.

    :raises NotFound: when there is none
    :raises Conflict: when it has ended
    """
    found = replace(_find(backend, operation_id), state=CANCELLED, ended=backend.now())
    if not backend.store.run(cancel_operation(backend.store.keys, found)):
        raise Conflict(f"operation `{operation_id}` has ended")
    return found


def _find(backend: Backend, operation_id: str) -> MotifOperation:
    found = backend.store.run(JOBS.read(backend.store.keys, operation_id))
    if found is None:
        raise NotFound(f"there is no operation `{operation_id}`")
    return found
