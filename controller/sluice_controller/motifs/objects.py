"""Motifs of single objects: each question and order is a call to whichever daemon is free."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import Page
from sluice_controller.catalog.vocabulary import account_of
from sluice_controller.identity.caller import Identity
from sluice_core.describe import ActionInfo, Scalar
from sluice_core.errors import CallerError, Forbidden, NotFound, PeerError
from sluice_dsl.diagnostics import closest_match
from sluice_dsl.syntax.units import UnitError, read_parameter
from sluice_motif_control import messages as verbs
from sluice_motif_control.actions import VERSIONS
from sluice_motif_control.calls import MotifClient

#: Seconds for which an answer is waited for.
PATIENCE: Final = 10.0


@dataclass(frozen=True, slots=True)
class ObjectPath:
    """An object as items are called."""

    account: str
    container: str
    name: str

    def __str__(self) -> str:
        return f"{self.account}/{self.container}/{self.name}"


def call(backend: Backend, verb: str, seconds: float = 0.0, **arguments: Any) -> Any:
    """Have a daemon do something.

    :param seconds: to wait for it, :data:`PATIENCE` at least
    :raises PeerError: when too many requests wait already, and as ``MotifClient.call``
    """
    if not backend.waiters.acquire(blocking=False):
        raise PeerError("too many requests wait for daemons `sluice-motifs`, try again")
    try:
        return MotifClient(backend.store).call(verb, max(seconds, PATIENCE), **arguments)
    finally:
        backend.waiters.release()


def page(
    backend: Backend,
    accounts: Collection[str] | None,
    account: str = "",
    container: str = "",
    limit: int = 100,
    marker: str = "",
) -> Page[Mapping[str, Any]]:
    """Objects with motifs, by name.

    :param accounts: those that may be shown; None for all
    :raises CallerError: for a container without its account
    :raises Forbidden: for an account that may not be shown
    """
    if container and not account:
        raise CallerError("`container` is given without `account`, expected both")
    found = account_of(backend.native, account) if account else ""
    if accounts is not None:
        found = found or next(iter(accounts), "")
        if found not in accounts:
            raise Forbidden(f"objects of account `{found or account}` are not yours to list")
    under = "".join(f"{part}/" for part in (found, container) if part)
    known = call(backend, verbs.LIST, under=under, marker=marker, limit=limit + 1)
    return Page(known[:limit], known[limit - 1]["item"] if len(known) > limit else "")


def show(backend: Backend, path: ObjectPath, why: bool = False) -> Mapping[str, Any]:
    """What is known of an object, and with ``why`` what stands in the way of its contraction."""
    found: Mapping[str, Any] = call(backend, verbs.WHY if why else verbs.SHOW, item=str(path))
    return found


def attach(
    backend: Backend, path: ObjectPath, template: str, params: Mapping[str, Scalar], identity: str
) -> Mapping[str, Any]:
    """Attach a motif to an object.

    :raises NotFound: when there is no such object or template
    :raises CallerError: for parameters that are none of the template's
    """
    info = find_template(backend, template)
    read = {name: _read(info, name, value) for name, value in params.items()}
    found: Mapping[str, Any] = call(
        backend, verbs.ATTACH, item=str(path), template=info.keyword, params=read, identity=identity
    )
    return found


def find_template(backend: Backend, keyword: str) -> ActionInfo:
    """A template that all daemons know.

    :raises NotFound: when there is none, with the near miss
    :raises PeerError: when no daemon runs
    """
    if backend.motifs is None or not backend.motifs.daemons():
        raise PeerError("motifs: no daemon `sluice-motifs` runs")
    templates = backend.motifs.templates()
    found = templates.get(keyword.lower())
    if found is None:
        near = closest_match(keyword.lower(), templates)
        hint = f", did you mean `{near}`" if near else f", expected one of {', '.join(templates)}"
        raise NotFound(f"unknown template `{keyword}`{hint}")
    return found.info


def identity_text(backend: Backend, caller: Identity, account: str) -> str:
    """Who attaches, as daemons compare it with access lists; empty for who may read everything."""
    if caller.is_admin:
        return ""
    project, user = caller.project_id, caller.user_id
    own = [f"owner:{account}"] if project and account == backend.config.reseller_prefix + project else []
    return ",".join([*own, f"{project}:{user}", f"*:{user}", f"{project}:*", "*:*"])


def _read(info: ActionInfo, name: str, value: Scalar) -> Scalar:
    """A parameter, whose value may be a text with a unit."""
    parameter = info.parameter(name)
    if parameter is None and name == VERSIONS:
        return value  # the daemon knows whether the template takes it
    if parameter is None:
        near = closest_match(name, [one.name for one in info.parameters])
        hint = f", did you mean `{near}`" if near else ""
        raise CallerError(f"template `{info.keyword}` has no parameter `{name}`{hint}")
    if not isinstance(value, str):
        return value
    try:
        return read_parameter(value, parameter)
    except UnitError as error:
        near = f", did you mean `{error.near_miss}`" if error.near_miss else ""
        raise CallerError(f"parameter `{name}` of template `{info.keyword}`: {error}{near}") from error
