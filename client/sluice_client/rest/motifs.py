"""The operations of the controller on motifs of objects, and on spaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sluice_client.rest.collection import Collection, join_path, make_query
from sluice_client.rest.transport import Data, Transport


class MotifApi:
    """The methods of :class:`~sluice_client.Client` that are about motifs.

    An object is its account, or project, its container and its name.  What takes longer than ``wait`` (30) seconds is
    answered with an error, and goes on.
    """

    _transport: Transport

    def motifs(self, account: str = "", container: str = "") -> Iterator[Data]:
        """Objects with motifs, by name."""
        return Collection(self._transport, "/motifs", "objects").list(account=account, container=container)

    def motif_templates(self) -> list[Data]:
        """The templates that every daemon knows."""
        found: list[Data] = self._transport.call("GET", "/motifs/templates")["templates"]
        return found

    def motif(self, account: str, container: str, name: str, why: bool = False) -> Data:
        """The motifs of an object; with ``why`` also what stands in the way of its contraction."""
        return self._transport.call("GET", join_path("motifs", account, container, name), query=make_query(why=why))

    def attach_motif(
        self, account: str, container: str, name: str, template: str, params: Mapping[str, Any] | None = None
    ) -> Data:
        """Attach a motif to an object."""
        body = {"template": template, "params": dict(params or {})}
        return self._transport.call("PUT", join_path("motifs", account, container, name), body=body)

    def detach_motif(self, account: str, container: str, name: str, template: str = "", wait: float = 0.0) -> Data:
        """Detach the motifs of a template, or all."""
        path, query = join_path("motifs", account, container, name), make_query(template=template, wait=wait)
        return self._transport.call("DELETE", path, query=query, patience=wait)

    def act_on_motif(
        self, account: str, container: str, name: str, action: str, verify: str = "", wait: float = 0.0
    ) -> Data:
        """Have an object expanded or contracted; ``action`` is ``expand`` or ``contract``."""
        body = {"action": action, **({"verify": verify} if verify else {})}
        path = join_path("motifs", account, container, name)
        return self._transport.call("POST", path, body=body, query=make_query(wait=wait), patience=wait)

    def expand_all(self, account: str = "", container: str = "") -> Data:
        """Have all contracted objects of an account, a container or the cluster expanded; the operation."""
        given = {"account": account, "container": container}
        body = {name: value for name, value in given.items() if value}
        return self._transport.call("POST", "/motifs/operations", body=body)

    def motif_operation(self, operation_id: str, wait: float = 0.0) -> Data:
        """How far an expansion of many objects is."""
        path = join_path("motifs", "operations", operation_id)
        return self._transport.call("GET", path, query=make_query(wait=wait), patience=wait)

    def cancel_motif_operation(self, operation_id: str) -> Data:
        """End an expansion of many objects."""
        return self._transport.call("POST", join_path("motifs", "operations", operation_id, "cancel"))

    def spaces(self, prefix: str = "") -> Iterator[Data]:
        """What is kept below a size, by name."""
        return Collection(self._transport, "/spaces").list(prefix=prefix)

    def space(self, name: str) -> Data:
        """One space: ``account/container``, ``account``, or ``CLUSTER``."""
        return Collection(self._transport, "/spaces").get(name)
