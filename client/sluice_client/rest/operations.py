"""The operations of the controller besides the resources: effective policies, changes, deployments, bandwidth, the
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
    """The methods of :class:`~sluice_client.Client` other than plain create, list, show, update or delete."""

    def collection(self, path: str, name: str = "") -> Collection:
        """Return a collection: at ``path``, with its items under ``name``, as in :class:`Collection`."""
        return Collection(self._transport, path, name)

    def uploads(self, path: str) -> Uploads:
        """Return the uploads of the items at ``path``."""
        return Uploads(self._transport, path)

    def get(self, path: str, **query: Any) -> Data:
        """Return the resource at ``path``; empty values of ``query`` are left out."""
        return self._transport.call("GET", path, query=make_query(**query))

    def put(self, path: str, body: Mapping[str, Any] | None = None, wait: float = 0.0, etag: str = "") -> Data:
        """Set the resource at ``path``; return it."""
        return self._transport.call(
            "PUT", path, body=body, query=make_query(wait=wait), headers=if_match(etag), patience=wait
        )

    def delete(self, path: str, wait: float = 0.0) -> None:
        """Delete what :meth:`put` has set at ``path``."""
        self._transport.call("DELETE", path, query=make_query(wait=wait), patience=wait)

    @calls("update_policy", changes="whole_body")
    def update_policy(self, policy_id: str, changes: Mapping[str, Any], etag: str = "", wait: float = 0.0) -> Data:
        """Change ``policy``, its sentence, or ``enabled``; other fields stay."""

    @calls("undo_policy")
    def undo_policy(self, policy_id: str, plan: bool = False, etag: str = "", wait: float = 0.0) -> Data:
        """Roll back the last change of a policy; with ``plan`` only return what would change.

        :param etag: refuse (412) when the configuration has another ``version``
        """

    def effective(self, target: str, volume: bool = False, **request: Any) -> Data:
        """Return the deciding policies of a request: ``method``, ``size``, ``type``, ``tag``; leave out unknown values.

        :param volume: whether ``target`` is a volume, ``account/volume id``, to which no request applies
        """
        query = {
            "volume" if volume else "target": target,
            **{name: value for name, value in request.items() if value not in (None, "")},
        }
        return self._transport.call("GET", "/effective", query=query)

    @calls("show_overview")
    def overview(self) -> Data:
        """Return policies, nodes and hosts by state, and floors that are not met, as counts."""

    @calls("show_permissions", "permissions")
    def permissions(self, target: str = "", **about: str) -> dict[str, bool]:
        """Return whether the caller may call each operation: all of them, or those on ``target``.

        :param target: a path, or what follows ``FOR`` in a sentence
        :param about: ``policy``, an id, in place of a target; the ``filter`` that is set; the ``stereotype``
        """

    @calls("list_changes")
    def changes(self, policy: str = "", by: str = "", since: str = "") -> Iterator[Data]:
        """Yield the changes with user and time, newest first."""

    @calls("show_change")
    def change(self, epoch: str) -> Data:
        """Return one change, with the documents that it replaced."""

    @calls("roll_back")
    def roll_back(self, epoch: str, plan: bool = False, force: bool = False, wait: float = 0.0, etag: str = "") -> Data:
        """Restore the configuration as it was after a change; with ``plan`` only return what would change.

        :param etag: refuse (412) when the configuration has another one
        """

    @calls("list_events")
    def events(self, **wanted: str) -> Iterator[Data]:
        """Yield the events of the cluster, oldest first.

        :param wanted: ``since``, a time or the id of an event; the least ``severity``; ``node``; ``policy``
        """

    @calls("list_events", one_page=True)
    def event_page(self, since: str, wait: float = 0.0, **wanted: str) -> Data:
        """Return the first ``events`` behind ``since``, and the id ``last`` for the next call.

        :param wait: seconds (at most 30) to wait for an event, if there is none yet
        :param wanted: as in :meth:`events`
        """

    @calls("create_rewrite")
    def create_rewrite(
        self, target: str, to: str, max_bw: str | float | None = None, max_objects_sec: float | None = None
    ) -> Data:
        """Rewrite the objects of ``tenant[/container[/prefix]]``, or of all (``CLUSTER``).

        :param to: ``policies``, ``plain`` or ``key``
        :param max_bw: a rate such as ``20MBps``; a number is MB/s
        """

    @calls("list_rewrites")
    def rewrites(self, state: str = "", target: str = "") -> Iterator[Data]:
        """Yield rewrites with their progress, oldest first."""

    @calls("show_rewrite", job_id="rewrite")
    def rewrite(self, job_id: str) -> Data:
        """Return one rewrite and its progress."""

    def order_rewrite(self, job_id: str, verb: str) -> Data:
        """Send a command to a rewrite; ``verb`` is ``pause``, ``resume`` or ``cancel``."""
        return self._transport.call("POST", join_path("rewrites", job_id, verb))

    def export(self) -> str:
        """Return the whole configuration as YAML."""
        request = Request("GET", "/export", headers={"Accept": f"{_YAML}, application/json"}, raw=True)
        found: bytes = self._transport.request(request).data
        return found.decode("utf-8", "replace")

    def import_configuration(self, text: str, plan: bool = False, force: bool = False, wait: float = 0.0) -> Data:
        """Replace the whole configuration; with ``plan`` only return what would change."""
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
        """Yield the filters that policies without metrics set for exactly this target."""

    @calls("deploy_filter", how="whole_body")
    def deploy_filter(self, target: str, keyword: str, how: Mapping[str, Any], wait: float = 0.0) -> Data:
        """Set a filter for a target with the ``params`` and the ``place`` of ``how``; other items are parameters."""

    @calls("undeploy_filter")
    def undeploy_filter(self, target: str, keyword: str, wait: float = 0.0) -> Data:
        """Remove a filter that was deployed; return the deployments that remain."""

    @calls("list_deployed_dependencies")
    def deployed_dependencies(self, target: str) -> Iterator[Data]:
        """Yield the files of filters that are deployed at a target."""

    @calls("deploy_dependency", name="dependency")
    def deploy_dependency(self, target: str, name: str, filters: Sequence[str] = (), wait: float = 0.0) -> Data:
        """Attach a file to ``filters``, or to the registered filters that are deployed at ``target``."""

    @calls("undeploy_dependency", name="dependency")
    def undeploy_dependency(self, target: str, name: str, filters: Sequence[str] = (), wait: float = 0.0) -> Data:
        """Detach a file from ``filters``, or from those that are deployed at ``target``."""

    @calls("show_locality", name="object_name")
    def locality(self, account: str, container: str, name: str) -> Data:
        """Return the devices that hold the replicas or fragments of an object."""

    @calls("create_container")
    def create_container(self, account: str, container: str, storage_policy: str) -> Data:
        """Create a container on a storage policy of Swift."""

    @calls("put_placement")
    def place(self, account: str, storage_policy: str, wait: float = 0.0, etag: str = "") -> Data:
        """Set the storage policy of a tenant's new containers."""

    def bandwidth(self, account: str = "") -> Data:
        """Return the streams of object servers by server, device and number, and their tenants' objectives, in MB/s."""
        path = join_path("bw", "accounts", account) if account else "/bw/osinfo"
        return self._transport.call("GET", path)

    @calls("show_bandwidth")
    def bandwidth_overview(self) -> Data:
        """Return the traffic of object servers by server, account and storage policy, in MB/s."""

    @calls("update_bandwidth_of_account")
    def set_bandwidth(self, account: str, value: str, storage_policy: str = "", wait: float = 0.0) -> Data:
        """Set a tenant's floor ``value`` on each object server; a bare number is MB/s."""

    def clear_bandwidth(self, account: str = "", storage_policy: str = "", wait: float = 0.0) -> list[str]:
        """Delete such floors, of all tenants without ``account``; return the ids of their policies."""
        path = join_path("bw", "clear", *filter(None, (account, storage_policy)))
        cleared: list[str] = self.put(path, wait=wait)["policies"]
        return cleared

    @calls("list_slo")
    def slos(self, account: str = "", name: str = "") -> Iterator[Data]:
        """Yield the service level objectives of tenants, in bytes per second."""

    def set_slo(self, account: str, name: str, value: str, storage_policy: str = "", wait: float = 0.0) -> Data:
        """Set an objective of a tenant over the whole cluster; a bare ``value`` is MB/s."""
        return self.put(_slo(account, name, storage_policy), {"value": value}, wait)

    def delete_slo(self, account: str, name: str, storage_policy: str = "", wait: float = 0.0) -> None:
        """Delete an objective; the tenant's others stay."""
        self.delete(_slo(account, name, storage_policy), wait)

    @calls("list_firings")
    def firings(self, policy_id: str, what: str = "", member: str = "") -> Iterator[Data]:
        """Yield the actions of a policy's actor, newest first."""


def _slo(account: str, name: str, storage_policy: str) -> str:
    return join_path("bw", "slo", account, name, *filter(None, (storage_policy,)))


class MetricHistoryApi(OperationCaller):
    """The methods of :class:`~sluice_client.Client` for the history of metrics."""

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
        """Return the values of ``metric``: ``points`` has a row for each step, with its beginning, mean, min, max and
        p95.

        :param target: empty for the cluster
        :param rest: a level; the sum of its targets without a series of their own, in place of ``target``
        :param begin: ISO 8601, unix seconds, or negative seconds from now on, as is ``end``
        :param step: seconds; 0 for a step that fits the range
        """

    @calls("list_metric_series")
    def metric_series(self, metric: str = "", target: str = "") -> Iterator[Data]:
        """Yield the series with stored history that the caller may read."""

    def forget_metric_history(self, target: str) -> int:
        """Delete the history of ``target`` and of what is in it; return the number of series."""
        answer = self._transport.call("DELETE", "/metrics/history", query={"target": target})
        return int(answer["series"])


class MotifApi(OperationCaller):
    """The methods of :class:`~sluice_client.Client` for motifs.

    An object is its account, or project, its container and its name.  An operation that takes longer than ``wait`` (30)
    seconds is answered with an error, and continues.
    """

    @calls("list_motifs")
    def motifs(self, account: str = "", container: str = "") -> Iterator[Data]:
        """Yield objects with motifs, by name."""

    @calls("list_motif_templates", "templates")
    def motif_templates(self) -> list[Data]:
        """Return the templates that every daemon has."""

    @calls("show_motif", name="object_name")
    def motif(self, account: str, container: str, name: str, why: bool = False) -> Data:
        """Return the motifs of an object; with ``why`` also what prevents its contraction."""

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
        """Expand or contract an object; ``action`` is ``expand`` or ``contract``."""

    @calls("expand_motifs")
    def expand_all(self, account: str = "", container: str = "") -> Data:
        """Expand all contracted objects of an account, a container or the cluster; return the operation."""

    @calls("show_motif_operation", operation_id="operation")
    def motif_operation(self, operation_id: str, wait: float = 0.0) -> Data:
        """Return the progress of an expansion of many objects."""

    @calls("cancel_motif_operation", operation_id="operation")
    def cancel_motif_operation(self, operation_id: str) -> Data:
        """Cancel an expansion of many objects."""

    @calls("list_spaces")
    def spaces(self, prefix: str = "") -> Iterator[Data]:
        """Yield the spaces, by name."""

    @calls("show_space", name="space")
    def space(self, name: str) -> Data:
        """Return one space: ``account/container``, ``account``, or ``CLUSTER``."""
