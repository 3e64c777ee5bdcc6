"""Cinder as requests ask it: with the rights of whoever asks, or with those of our service user."""

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
    """Whoever asks, and the token that Cinder decides by."""

    identity: Identity
    token: str = field(repr=False)

    @property
    def name(self) -> str:
        """For the audit."""
        return self.identity.name


def service_cinder(backend: Backend) -> CinderService:
    """Cinder with our service user's rights.

    :raises PeerError: when this API knows no Cinder
    """
    if backend.cinder is None:
        raise PeerError("this API knows no Cinder, its options `cinder_auth_url` and following name one")
    return backend.cinder


def caller_cinder(backend: Backend, caller: Caller) -> Cinder:
    """Cinder with the rights of whoever asks; with the static token those of our service user.

    :raises CallerError: when the token is for no project
    """
    service = service_cinder(backend)
    if backend.config.auth != KEYSTONE:
        return service
    if not caller.identity.project_id:
        raise CallerError("the token is for no project, and volumes belong to projects")
    return service.as_caller(caller.token, caller.identity.project_id)


def node_konnector(backend: Backend, node: str) -> Konnector:
    """The konnector of a node.

    :raises PeerError: when it has none now
    """
    if backend.konnectors is None:
        raise PeerError("this API knows no Cinder, its options `cinder_auth_url` and following name one")
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
