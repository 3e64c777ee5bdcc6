"""The operations of the controller beside the resources: effective policies, changes, deployments, bandwidth."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sluice_client.rest.auth import IDEMPOTENCY_HEADER, Request
from sluice_client.rest.collection import Collection, if_match, join_path, make_query
from sluice_client.rest.transport import Data, Transport
from sluice_client.rest.uploads import Uploads

_YAML: Final = "application/yaml"


class OperatorApi:
    """The methods of :class:`~sluice_client.Client` that are no plain create, list, show, update or delete."""

    _transport: Transport

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

    def delete(self, path: str) -> None:
        """Delete what :meth:`put` has set at ``path``."""
        self._transport.call("DELETE", path)

    def update_policy(self, policy_id: str, changes: Mapping[str, Any], etag: str = "", wait: float = 0.0) -> Data:
        """Change ``policy``, its sentence, or ``enabled``; what is not named stays."""
        return self.put(join_path("policies", policy_id), changes, wait, etag)

    def undo_policy(self, policy_id: str, plan: bool = False, etag: str = "", wait: float = 0.0) -> Data:
        """Undo the last change of a policy; with ``plan`` only say what that means.

        :param etag: refuse (412) when the configuration has another ``version`` meanwhile
        """
        return self._transport.call(
            "POST",
            join_path("policies", policy_id, "undo"),
            query=make_query(plan=plan, wait=wait),
            headers=if_match(etag),
            patience=wait,
        )

    def effective(self, target: str, volume: bool = False, **request: Any) -> Data:
        """What decides for a request: ``method``, ``size``, ``type``, ``tag``; the unknown is left out.

        :param volume: whether ``target`` is a volume, ``account/volume id``, of which nothing is requested
        """
        query = {
            "volume" if volume else "target": target,
            **{name: value for name, value in request.items() if value not in (None, "")},
        }
        return self._transport.call("GET", "/effective", query=query)

    def overview(self) -> Data:
        """Policies, nodes and hosts by state, and floors that are not met, in counts."""
        return self._transport.call("GET", "/overview")

    def permissions(self, target: str = "", **about: str) -> dict[str, bool]:
        """Whether one may do each operation: all of them, or those about things to ``target``.

        :param target: a path, or what follows ``FOR`` in a sentence
        :param about: ``policy``, an id, in place of a target; the ``filter`` that is set; the ``stereotype``
        """
        query = make_query(target=target, **about)
        found: dict[str, bool] = self._transport.call("GET", "/permissions", query=query)["permissions"]
        return found

    def changes(self, policy: str = "", by: str = "", since: str = "") -> Iterator[Data]:
        """Who changed what when, newest first."""
        return self.collection("/changes").list(policy=policy, by=by, since=since)

    def change(self, epoch: str) -> Data:
        """One change, with what it replaced."""
        return self.collection("/changes").get(epoch)

    def roll_back(self, epoch: str, plan: bool = False, force: bool = False, wait: float = 0.0, etag: str = "") -> Data:
        """Go back to the configuration as it stood after a change; with ``plan`` only say what that means.

        :param etag: refuse (412) when the configuration has another one meanwhile
        """
        path = join_path("changes", epoch, "rollback")
        query = make_query(plan=plan, force=force, wait=wait)
        return self._transport.call("POST", path, query=query, headers=if_match(etag), patience=wait)

    def events(self, **wanted: str) -> Iterator[Data]:
        """What went wrong anywhere, oldest first.

        :param wanted: ``since``, a time or the id of an event; the least ``severity``; ``node``; ``policy``
        """
        return self.collection("/events").list(**wanted)

    def event_page(self, since: str, wait: float = 0.0, **wanted: str) -> Data:
        """The first ``events`` behind ``since``, and the id ``last`` for the next call.

        :param wait: seconds (at most 30) to wait for one, where there is none yet
        :param wanted: as in :meth:`events`
        """
        query = make_query(since=since, wait=wait, **wanted)
        return self._transport.call("GET", "/events", query=query, patience=wait)

    def create_rewrite(
        self, target: str, to: str, max_bw: str | float | None = None, max_objects_sec: float | None = None
    ) -> Data:
        """Have the objects of ``tenant[/container[/prefix]]``, or of all (``CLUSTER``), rewritten.

        :param to: ``policies``, ``plain`` or ``key``
        :param max_bw: a rate such as ``20MBps``; a number is MB/s
        """
        limits = {"max_bw": max_bw, "max_objects_sec": max_objects_sec}
        given = {name: value for name, value in limits.items() if value is not None}
        return self._transport.call(
            "POST",
            "/rewrites",
            body={"target": target, "to": to, **given},
            headers={IDEMPOTENCY_HEADER: uuid.uuid4().hex},
        )

    def rewrites(self, state: str = "", target: str = "") -> Iterator[Data]:
        """Rewrites and how far each is, oldest first."""
        return self.collection("/rewrites").list(state=state, target=target)

    def rewrite(self, job_id: str) -> Data:
        """One rewrite and how far it is."""
        return self.collection("/rewrites").get(job_id)

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

    def deployments(self, target: str) -> Iterator[Data]:
        """The filters that are set for just this target by policies without metrics."""
        return self.collection(join_path("filters", target, "deploy"), "filters").list()

    def deploy_filter(self, target: str, keyword: str, how: Mapping[str, Any], wait: float = 0.0) -> Data:
        """Set a filter for a target with the ``params`` and the ``place`` of ``how``; other items are parameters."""
        return self.put(join_path("filters", target, "deploy", keyword), how, wait)

    def undeploy_filter(self, target: str, keyword: str, wait: float = 0.0) -> Data:
        """Take back what deploying it has set; what is still deployed there."""
        return self.put(join_path("filters", target, "undeploy", keyword), wait=wait)

    def deployed_dependencies(self, target: str) -> Iterator[Data]:
        """The files that filters deployed at a target use."""
        return self.collection(join_path("filters", "dependencies", target, "deploy"), "dependencies").list()

    def deploy_dependency(self, target: str, name: str, filters: Sequence[str] = (), wait: float = 0.0) -> Data:
        """Attach a file to ``filters``, or to the registered filters that are deployed at ``target``."""
        body = {"filters": list(filters)} if filters else {}
        return self.put(join_path("filters", "dependencies", target, "deploy", name), body, wait)

    def undeploy_dependency(self, target: str, name: str, filters: Sequence[str] = (), wait: float = 0.0) -> Data:
        """Detach a file from ``filters``, or from those that are deployed at ``target``."""
        body = {"filters": list(filters)} if filters else {}
        return self.put(join_path("filters", "dependencies", target, "undeploy", name), body, wait)

    def locality(self, account: str, container: str, name: str) -> Data:
        """The devices that hold the replicas or fragments of an object."""
        return self._transport.call("GET", join_path("locality", account, container, name))

    def create_container(self, account: str, container: str, storage_policy: str) -> Data:
        """A container on a storage policy of Swift's."""
        return self.put(join_path("containers", account, container), {"storage_policy": storage_policy})

    def place(self, account: str, storage_policy: str, wait: float = 0.0, etag: str = "") -> Data:
        """Let a tenant's new containers go to a storage policy."""
        return self.put(join_path("placements", account), {"storage_policy": storage_policy}, wait, etag)

    def bandwidth(self, account: str = "") -> Data:
        """The streams of object servers by server, device and number, and what their tenants asked for, in MB/s."""
        path = join_path("bw", "accounts", account) if account else "/bw/osinfo"
        return self._transport.call("GET", path)

    def bandwidth_overview(self) -> Data:
        """What object servers move by server, account and storage policy, in MB/s."""
        return self._transport.call("GET", "/bw")

    def set_bandwidth(self, account: str, value: str, storage_policy: str = "", wait: float = 0.0) -> Data:
        """Let each object server give a tenant at least ``value``; a bare number is MB/s."""
        body = {"value": value, **({"storage_policy": storage_policy} if storage_policy else {})}
        return self.put(join_path("bw", "accounts", account), body, wait)

    def clear_bandwidth(self, account: str = "", storage_policy: str = "", wait: float = 0.0) -> list[str]:
        """Take such values back, of everybody without ``account``; the ids of their policies."""
        path = join_path("bw", "clear", *filter(None, (account, storage_policy)))
        cleared: list[str] = self.put(path, wait=wait)["policies"]
        return cleared

    def slos(self, account: str = "", name: str = "") -> Iterator[Data]:
        """The service level objectives of tenants, in bytes per second."""
        return self.collection("/bw/slo", "slos").list(account=account, name=name)

    def set_slo(self, account: str, name: str, value: str, storage_policy: str = "", wait: float = 0.0) -> Data:
        """Promise a tenant ``value`` over the whole cluster; a bare number is MB/s."""
        return self.put(_slo(account, name, storage_policy), {"value": value}, wait)

    def delete_slo(self, account: str, name: str, storage_policy: str = "", wait: float = 0.0) -> None:
        """Take an objective back; the tenant's others stay."""
        path = _slo(account, name, storage_policy)
        self._transport.call("DELETE", path, query=make_query(wait=wait), patience=wait)

    def firings(self, policy_id: str, what: str = "", member: str = "") -> Iterator[Data]:
        """What the actor of a policy did, newest first."""
        return self.collection(join_path("policies", policy_id, "firings")).list(what=what, member=member)


def _slo(account: str, name: str, storage_policy: str) -> str:
    return join_path("bw", "slo", account, name, *filter(None, (storage_policy,)))
