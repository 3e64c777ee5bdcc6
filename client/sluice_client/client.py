"""The controller's resources as methods."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Self
from urllib.parse import quote

from sluice_client.transport import Transport

Data = dict[str, Any]


class Client:
    """Speaks to the controller at ``url``; each thread needs its own.

    Answers are the controller's JSON as it comes; ``GET /schema`` describes it.  Every method raises
    :class:`~sluice_client.ApiError` when the controller refuses, and
    :class:`~sluice_client.Unreachable` when it does not answer.

    :param timeout: seconds for connecting, and for each answer
    """

    def __init__(self, url: str, token: str = "", timeout: float = 10.0) -> None:
        self._transport = Transport(url, token, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def create_policy(self, text: str, wait: float = 0.0) -> Data:
        """The policy that ``text``, one sentence, became.

        For several sentences it is ``{"policies": [...]}``; :meth:`create_policies` always gives a list.

        :param wait: seconds (at most 30) to wait until all live nodes have acknowledged it
        """
        query = {"wait": wait} if wait else None
        created: Data = self._transport.call("POST", "/policies", {"policy": text}, query, patience=wait)
        return created

    def create_policies(self, text: str, wait: float = 0.0) -> list[Data]:
        """The policies that the sentences of ``text`` became: all of them, or an error and none."""
        created = self.create_policy(text, wait)
        policies: list[Data] = created.get("policies", [created])
        return policies

    def check_policy(self, text: str) -> list[Data]:
        """What the sentences of ``text`` would become; nothing is changed."""
        checked: list[Data] = self._transport.call("POST", "/policies/check", {"policy": text})["policies"]
        return checked

    def policies(self, tenant: str = "", state: str = "", page: int = 100) -> Iterator[Data]:
        """All policies, oldest first, fetched ``page`` at a time."""
        given = {"tenant": tenant, "state": state, "limit": page, "marker": ""}
        while True:
            query = {name: value for name, value in given.items() if value}
            found = self._transport.call("GET", "/policies", query=query)
            yield from found["policies"]
            if not found["next_marker"]:
                return
            given["marker"] = found["next_marker"]

    def policy(self, policy_id: str) -> Data:
        """One policy, what its actor observes, and which nodes enforce it."""
        found: Data = self._transport.call("GET", _path("policies", policy_id))
        return found

    def delete_policy(
        self, policy_id: str, keep: bool = False, version: int | None = None, wait: float = 0.0
    ) -> Data | None:
        """Delete a policy and take back what it set.

        :param keep: leave what is in force, under a new static policy, which is returned
        :param version: refuse (412) when the policy has another version meanwhile
        """
        query: dict[str, Any] = {"keep": "true"} if keep else {}
        query |= {"wait": wait} if wait else {}
        headers = {} if version is None else {"If-Match": f'"{version}"'}
        kept: Data | None = self._transport.call(
            "DELETE", _path("policies", policy_id), query=query, headers=headers, patience=wait
        )
        return kept

    def nodes(self) -> list[Data]:
        """All nodes and what they reported last."""
        return self._list("/nodes", "nodes")

    def node(self, node: str) -> Data:
        """One node."""
        found: Data = self._transport.call("GET", _path("nodes", node))
        return found

    def forget_node(self, node: str) -> None:
        """Forget a node that is no more."""
        self._transport.call("DELETE", _path("nodes", node))

    def adopt(self) -> Data:
        """Tell all nodes to take the current history as it is, after Redis was wiped or failed over."""
        head: Data = self._transport.call("POST", "/nodes/adopt")
        return head

    def filters(self) -> list[Data]:
        """The filters that the cluster can run."""
        return self._list("/filters", "filters")

    def known_filters(self) -> list[Data]:
        """Every keyword of DO SET, also those that the cluster cannot enforce."""
        return self._list("/registry/filters", "filters")

    def filter(self, keyword: str) -> Data:
        """A filter that was registered at run time."""
        found: Data = self._transport.call("GET", _path("filters", keyword))
        return found

    def register_filter(self, description: Mapping[str, Any]) -> Data:
        """Register a filter for an isolated environment; without code it cannot be used yet.

        :param description: ``keyword``, ``environment``, ``language``, ``main``, ``reverse``,
            ``capabilities``, ``parameters``, ``help``
        """
        made: Data = self._transport.call("POST", "/filters", description)
        return made

    def upload_filter(self, keyword: str, code: bytes, wait: float = 0.0) -> Data:
        """Give a registered filter its code, or another revision of it; the digest is verified there.

        :param wait: seconds (at most 30) to wait until all live nodes have acknowledged it
        """
        headers = {"X-Content-Sha256": hashlib.sha256(code).hexdigest(), "Content-Type": "application/octet-stream"}
        query = {"wait": wait} if wait else None
        made: Data = self._transport.call(
            "PUT", _path("filters", keyword, "data"), query=query, headers=headers, patience=wait, data=code
        )
        return made

    def unregister_filter(self, keyword: str, force: bool = False) -> None:
        """Forget a registered filter that no policy uses.

        :param force: even if objects stored through it cannot be read any more
        """
        self._transport.call("DELETE", _path("filters", keyword), query={"force": "true"} if force else None)

    def metrics(self) -> list[Data]:
        """The workload metrics."""
        return self._list("/registry/metrics", "metrics")

    def terms(self) -> list[Data]:
        """The coined terms."""
        return self._list("/registry/terms", "terms")

    def health(self) -> Mapping[str, Any]:
        """How the controller and what it depends on fare; needs no token."""
        found: Data = self._transport.call("GET", "/health", accepted=(503,))
        return found

    def _list(self, path: str, name: str) -> list[Data]:
        found: list[Data] = self._transport.call("GET", path)[name]
        return found


def _path(*parts: str) -> str:
    return "".join("/" + quote(part, safe="") for part in parts)
