"""Access to Cinder, with the rights of the caller or those of Sluice's service user."""

from __future__ import annotations

from dataclasses import dataclass, field

from sluice_controller.catalog.backend import Backend
from sluice_controller.config import KEYSTONE
from sluice_controller.identity.caller import Identity
from sluice_core.errors import CallerError, Conflict, NotFound, PeerError
from sluice_volumes.cinder.adapter import Cinder
from sluice_volumes.cinder.service import CinderService
from sluice_volumes.konnector_client import Konnector, closest


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller, and its token for Cinder."""

    identity: Identity
    token: str = field(repr=False)

    @property
    def name(self) -> str:
        """The name for the log of changes."""
        return self.identity.name


def service_cinder(backend: Backend) -> CinderService:
    """Cinder with the rights of Sluice's service user.

    :raises PeerError: when this API has no Cinder
    """
    if backend.cinder is None:
        raise PeerError("this API has no Cinder, set its options `cinder_auth_url` and the following ones")
    return backend.cinder


def caller_cinder(backend: Backend, caller: Caller) -> Cinder:
    """Cinder with the rights of the caller; with the static token those of Sluice's service user.

    :raises CallerError: when the token has no project
    """
    service = service_cinder(backend)
    if backend.config.auth != KEYSTONE:
        return service
    if not caller.identity.project_id:
        raise CallerError("the token has no project, and volumes belong to projects")
    return service.as_caller(caller.token, caller.identity.project_id)


def node_konnector(backend: Backend, node: str) -> Konnector:
    """The konnector of a node.

    :raises PeerError: when it has none now
    """
    if backend.konnectors is None:
        raise PeerError("this API has no Cinder, set its options `cinder_auth_url` and the following ones")
    return backend.konnectors(node)


def check_node(backend: Backend, node: str) -> None:
    """
    :raises NotFound: when there is no such node
    :raises Conflict: when it has no konnector
    """
    reports = {one.node: one for one in backend.store.nodes()}
    with_konnector = [name for name, one in reports.items() if one.konnector]
    if node not in reports:
        raise NotFound(f"there is no node `{node}`, {closest(node, with_konnector)}")
    if node not in with_konnector:
        raise Conflict(f"node `{node}` has no konnector, {closest(node, with_konnector)}")
