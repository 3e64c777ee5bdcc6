"""The operations of the controller on motifs of objects, and on spaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sluice_client.rest.collection import join_path
from sluice_client.rest.operations_document import OperationCaller, calls
from sluice_client.rest.transport import Data


class MotifApi(OperationCaller):
    """The methods of :class:`~sluice_client.Client` that are about motifs.

    An object is its account, or project, its container and its name.  What takes longer than ``wait`` (30) seconds is
    answered with an error, and goes on.
    """

    @calls("list_motifs")
    def motifs(self, account: str = "", container: str = "") -> Iterator[Data]:
        """Objects with motifs, by name."""

    @calls("list_motif_templates", "templates")
    def motif_templates(self) -> list[Data]:
        """The templates that every daemon knows."""

    @calls("show_motif", name="object_name")
    def motif(self, account: str, container: str, name: str, why: bool = False) -> Data:
        """The motifs of an object; with ``why`` also what stands in the way of its contraction."""

    def attach_motif(
        self, account: str, container: str, name: str, template: str, params: Mapping[str, Any] | None = None
    ) -> Data:
        """Attach a motif to an object."""
        body = {"template": template, "params": dict(params or {})}
        return self._transport.call("PUT", join_path("motifs", account, container, name), body=body)

    @calls("detach_motif", name="object_name")
    def detach_motif(self, account: str, container: str, name: str, template: str = "", wait: float = 0.0) -> Data:
        """Detach the motifs of a template, or all."""

    @calls("act_on_motif", name="object_name")
    def act_on_motif(
        self, account: str, container: str, name: str, action: str, verify: str = "", wait: float = 0.0
    ) -> Data:
        """Have an object expanded or contracted; ``action`` is ``expand`` or ``contract``."""

    @calls("expand_motifs")
    def expand_all(self, account: str = "", container: str = "") -> Data:
        """Have all contracted objects of an account, a container or the cluster expanded; the operation."""

    @calls("show_motif_operation", operation_id="operation")
    def motif_operation(self, operation_id: str, wait: float = 0.0) -> Data:
        """How far an expansion of many objects is."""

    @calls("cancel_motif_operation", operation_id="operation")
    def cancel_motif_operation(self, operation_id: str) -> Data:
        """End an expansion of many objects."""

    @calls("list_spaces")
    def spaces(self, prefix: str = "") -> Iterator[Data]:
        """What is kept below a size, by name."""

    @calls("show_space", name="space")
    def space(self, name: str) -> Data:
        """One space: ``account/container``, ``account``, or ``CLUSTER``."""
