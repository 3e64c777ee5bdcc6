"""Spaces, as the daemons that keep them reported them last."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from sluice_controller.catalog import entries
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import Page
from sluice_controller.catalog.vocabulary import account_of
from sluice_core.errors import NotFound
from sluice_core.messages.elasticity import WHOLE_CLUSTER
from sluice_motif_control.messages import SpaceStatus
from sluice_motif_control.spaces import read_spaces

#: How the space of the whole cluster is called in paths and answers.
CLUSTER: Final = "CLUSTER"


def space_name(status: SpaceStatus) -> str:
    """What a space is called: its path, or ``CLUSTER``."""
    return CLUSTER if status.path == WHOLE_CLUSTER else status.path


def account_of_space(name: str) -> str:
    """The account that a space is in; empty for the cluster's."""
    return "" if name == CLUSTER else name.partition("/")[0]


def named_space(backend: Backend, name: str) -> str:
    """The name of the space that is called ``name``, in which a project may stand for its account.

    :raises CallerError: when it is neither a project's nor an account's
    """
    if name == CLUSTER:
        return name
    tenant, slash, container = name.partition("/")
    return f"{account_of(backend.native, tenant)}{slash}{container}"


def page(backend: Backend, accounts: Collection[str] | None, limit: int, marker: str, prefix: str) -> Page[SpaceStatus]:
    """Spaces by name.

    :param accounts: those that may be shown; None for all
    :param prefix: what names begin with; of a path, a project may stand for its account
    :raises CallerError: for a path in what is neither a project's nor an account's
    """
    known = _known(backend)
    prefix = named_space(backend, prefix) if "/" in prefix else prefix
    shown = {name: one for name, one in known.items() if accounts is None or account_of_space(name) in accounts}
    return entries.page(shown, limit, marker, prefix)


def find(backend: Backend, name: str) -> SpaceStatus:
    """One space.

    :raises NotFound: when no daemon keeps it
    """
    found = _known(backend).get(name)
    if found is None:
        raise NotFound(
            f"no daemon keeps a space `{name}`: it has objects with motifs once a policy sets `elasticity` for it, "
            "they are attached, and a daemon `sluice-motifs` runs"
        )
    return found


def _known(backend: Backend) -> dict[str, SpaceStatus]:
    return {space_name(one): one for one in backend.store.run(read_spaces(backend.store.keys))}
