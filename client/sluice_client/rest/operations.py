"""The operations of the controller beside the resources: effective policies, changes, deployments, bandwidth, the
history of metrics, motifs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sluice_client.rest.auth import Request
from sluice_client.rest.collection import Collection, if_match, join_path, make_query
from sluice_client.rest.operations_document import OperationCaller, calls
from sluice_client.rest.transport import Data
from sluice_client.rest.uploads import Uploads

_YAML: Final = "application/yaml"


class OperatorApi(OperationCaller):
    """The methods of :class:`~sluice_client.Client` that are no plain create, list, show, update or delete."""

    def collection(self, path: str, name: str = "") -> Collection:
        """The collection of any resource: at ``path``, with its items under ``name``, as in :class:`Collection`."""
        return Collection(self._transport, path, name)

    def uploads(self, path: str) -> Uploads:
        """The code of the things at ``path``."""
        return Uploads(self._transport, path)

    def get(self, path: str, **query: Any) -> Data:
        """The resource at ``path``; empty values of ``query`` are left out."""
        return self._transport.call("GET", path, query=make_query(**query))

    def put(self, path: str, body: Mapping[str, Any] | None = None, wait: float = 0.0, etag: str = "") -> Data:
        """Set the resource at ``path``; returns it."""
        return self._transport.call(
            "PUT", path, body=body, query=make_query(wait=wait), headers=if_match(etag), patience=wait
        )

    def delete(self, path: str, wait: float = 0.0) -> None:
        """Delete what :meth:`put` has set at ``path``."""
        self._transport.call("DELETE", path, query=make_query(wait=wait), patience=wait)

    @calls("update_policy", changes="whole_body")
    def update_policy(self, policy_id: str, changes: Mapping[str, Any], etag: str = "", wait: float = 0.0) -> Data:
        """Change ``policy``, its sentence, or ``enabled``; what is not named stays."""

    @calls("undo_policy")
    def undo_policy(self, policy_id: str, plan: bool = False, etag: str = "", wait: float = 0.0) -> Data:
        """Undo the last change of a policy; with ``plan`` only say what that means.

        :param etag: refuse (412) when the configuration has another ``version`` meanwhile
        """

    def effective(self, target: str, volume: bool = False, **request: Any) -> Data:
        """What decides for a request: ``method``, ``size``, ``type``, ``tag``; the unknown is left out.

        :param volume: whether ``target`` is a volume, ``account/volume id``, of which nothing is requested
        """
        query = {
            "volume" if volume else "target": target,
            **{name: value for name, value in request.items() if value not in (None, "")},
        }
        return self._transport.call("GET", "/effective", query=query)

    @calls("show_overview")
    def overview(self) -> Data:
        """Policies, nodes and hosts by state, and floors that are not met, in counts."""

    @calls("show_permissions", "permissions")
    def permissions(self, target: str = "", **about: str) -> dict[str, bool]:
        """Whether one may do each operation: all of them, or those about things to ``target``.

        :param target: a path, or what follows ``FOR`` in a sentence
        :param about: ``policy``, an id, in place of a target; the ``filter`` that is set; the ``stereotype``
        """

    @calls("list_changes")
    def changes(self, policy: str = "", by: str = "", since: str = "") -> Iterator[Data]:
        """Who changed what when, newest first."""

    @calls("show_change")
    def change(self, epoch: str) -> Data:
        """One change, with what it replaced."""

    @calls("roll_back")
    def roll_back(self, epoch: str, plan: bool = False, force: bool = False, wait: float = 0.0, etag: str = "") -> Data:
        """Go back to the configuration as it stood after a change; with ``plan`` only say what that means.

        :param etag: refuse (412) when the configuration has another one meanwhile
        """

    @calls("list_events")
    def events(self, **wanted: str) -> Iterator[Data]:
        """What went wrong anywhere, oldest first.

        :param wanted: ``since``, a time or the id of an event; the least ``severity``; ``node``; ``policy``
        """

    @calls("list_events", one_page=True)
    def event_page(self, since: str, wait: float = 0.0, **wanted: str) -> Data:
        """The first ``events`` behind ``since``, and the id ``last`` for the next call.

        :param wait: seconds (at most 30) to wait for one, where there is none yet
        :param wanted: as in :meth:`events`
        """

    @calls("create_rewrite")
    def create_rewrite(
        self, target: str, to: str, max_bw: str | float | None = None, max_objects_sec: float | None = None
    ) -> Data:
        """Have the objects of ``tenant[/container[/prefix]]``, or of all (``CLUSTER``), rewritten.

        :param to: ``policies``, ``plain`` or ``key``
        :param max_bw: a rate such as ``20MBps``; a number is MB/s
        """

    @calls("list_rewrites")
    def rewrites(self, state: str = "", target: str = "") -> Iterator[Data]:
        """Rewrites and how far each is, oldest first."""

    @calls("show_rewrite", job_id="rewrite")
    def rewrite(self, job_id: str) -> Data:
        """One rewrite and how far it is."""

    def order_rewrite(self, job_id: str, verb: str) -> Data:
        """Have a rewrite go on otherwise; ``verb`` is ``pause``, ``resume`` or ``cancel``."""
        return self._transport.call("POST", join_path("rewrites", job_id, verb))

    def export(self) -> str:
        """The whole configuration as YAML."""
        request = Request("GET", "/export", headers={"Accept": f"{_YAML}, application/json"}, raw=True)
        found: bytes = self._transport.request(request).data
        return found.decode("utf-8", "replace")

    def import_configuration(self, text: str, plan: bool = False, force: bool = False, wait: float = 0.0) -> Data:
        """Replace the whole configuration; with ``plan`` only say what would change."""
        return self._transport.call(
            "PUT",
            "/import",
            data=text.encode(),
            query=make_query(plan=plan, force=force, wait=wait),
            headers={"Content-Type": _YAML},
            patience=wait,
        )

    @calls("list_deployments")
    def deployments(self, target: str) -> Iterator[Data]:
        """The filters that are set for just this target by policies without metrics."""

    @calls("deploy_filter", how="whole_body")
    def deploy_filter(self, target: str, keyword: str, how: Mapping[str, Any], wait: float = 0.0) -> Data:
        """Set a filter for a target with the ``params`` and the ``place`` of ``how``; other items are parameters."""

    @calls("undeploy_filter")
    def undeploy_filter(self, target: str, keyword: str, wait: float = 0.0) -> Data:
        """Take back what deploying it has set; what is still deployed there."""

    @calls("list_deployed_dependencies")
    def deployed_dependencies(self, target: str) -> Iterator[Data]:
        """The files that filters deployed at a target use."""

    @calls("deploy_dependency", name="dependency")
    def deploy_dependency(self, target: str, name: str, filters: Sequence[str] = (), wait: float = 0.0) -> Data:
        """Attach a file to ``filters``, or to the registered filters that are deployed at ``target``."""

    @calls("undeploy_dependency", name="dependency")
    def undeploy_dependency(self, target: str, name: str, filters: Sequence[str] = (), wait: float = 0.0) -> Data:
        """Detach a file from ``filters``, or from those that are deployed at ``target``."""

    @calls("show_locality", name="object_name")
    def locality(self, account: str, container: str, name: str) -> Data:
        """The devices that hold the replicas or fragments of an object."""

    @calls("create_container")
    def create_container(self, account: str, container: str, storage_policy: str) -> Data:
        """A container on a storage policy of Swift's."""

    @calls("put_placement")
    def place(self, account: str, storage_policy: str, wait: float = 0.0, etag: str = "") -> Data:
        """Let a tenant's new containers go to a storage policy."""

    def bandwidth(self, account: str = "") -> Data:
        """The streams of object servers by server, device and number, and what their tenants asked for, in MB/s."""
        path = join_path("bw", "accounts", account) if account else "/bw/osinfo"
        return self._transport.call("GET", path)

    @calls("show_bandwidth")
    def bandwidth_overview(self) -> Data:
        """What object servers move by server, account and storage policy, in MB/s."""

    @calls("update_bandwidth_of_account")
    def set_bandwidth(self, account: str, value: str, storage_policy: str = "", wait: float = 0.0) -> Data:
        """Let each object server give a tenant at least ``value``; a bare number is MB/s."""

    def clear_bandwidth(self, account: str = "", storage_policy: str = "", wait: float = 0.0) -> list[str]:
        """Take such values back, of everybody without ``account``; the ids of their policies."""
        path = join_path("bw", "clear", *filter(None, (account, storage_policy)))
        cleared: list[str] = self.put(path, wait=wait)["policies"]
        return cleared

    @calls("list_slo")
    def slos(self, account: str = "", name: str = "") -> Iterator[Data]:
        """The service level objectives of tenants, in bytes per second."""

    def set_slo(self, account: str, name: str, value: str, storage_policy: str = "", wait: float = 0.0) -> Data:
        """Promise a tenant ``value`` over the whole cluster; a bare number is MB/s."""
        return self.put(_slo(account, name, storage_policy), {"value": value}, wait)

    def delete_slo(self, account: str, name: str, storage_policy: str = "", wait: float = 0.0) -> None:
        """Take an objective back; the tenant's others stay."""
        self.delete(_slo(account, name, storage_policy), wait)

    @calls("list_firings")
    def firings(self, policy_id: str, what: str = "", member: str = "") -> Iterator[Data]:
        """What the actor of a policy did, newest first."""


def _slo(account: str, name: str, storage_policy: str) -> str:
    return join_path("bw", "slo", account, name, *filter(None, (storage_policy,)))


class MetricHistoryApi(OperationCaller):
    """The methods of :class:`~sluice_client.Client` that are about the history of metrics."""

    @calls("show_metric_history", begin="from", end="to")
    def metric_history(
        self,
        metric: str,
        target: str = "",
        rest: str = "",
        begin: str = "",
        end: str = "",
        step: int = 0,
    ) -> Data:
        """What ``metric`` was: ``points`` has a row for each step, with its beginning, mean, min, max and p95.

        :param target: of which; the cluster when empty
        :param rest: a level; the sum of its targets that are not kept one by one, instead of ``target``
        :param begin: ISO 8601, unix seconds, or negative seconds from now on, as is ``end``
        :param step: seconds; 0 for what suits the range
        """

    @calls("list_metric_series")
    def metric_series(self, metric: str = "", target: str = "") -> Iterator[Data]:
        """The series of which history is kept, and that one may see."""

    def forget_metric_history(self, target: str) -> int:
        """Forget the history of ``target`` and of what is in it; returns how many series that were."""
        answer = self._transport.call("DELETE", "/metrics/history", query={"target": target})
        return int(answer["series"])


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
