"""The controller's resources as methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, Final, Self

from sluice_client.rest.auth import HttpSession, KeystoneSession, TokenSession
from sluice_client.rest.operations import MetricHistoryApi, MotifApi, OperatorApi
from sluice_client.rest.operations_document import calls
from sluice_client.rest.transport import Data, Retries, Transport
from sluice_client.rest.uploads import Uploads
from sluice_client.rest.volumes import VolumeApi

if TYPE_CHECKING:
    from keystoneauth1.session import Session

TIMEOUT: Final = 10.0
PAGE: Final = 100


class Client(OperatorApi, VolumeApi, MotifApi, MetricHistoryApi):
    """A client of the controller at ``url``; each thread needs its own.

    Answers are the controller's JSON, unchanged; ``GET /schema`` describes it.  Every method raises
    :class:`~sluice_client.ApiError` when the controller refuses, and
    :class:`~sluice_client.Unreachable` when it does not answer.

    ``filter_code``, ``metric_code``, ``controller_code`` and ``dependency_data`` upload, download and restore code.

    :param timeout: seconds for connecting, and for each answer
    :param retries: how often idempotent calls are repeated
    """

    def __init__(self, url: str, token: str = "", timeout: float = TIMEOUT, retries: Retries | None = None) -> None:
        self._use(TokenSession(url, token, timeout), retries)

    @classmethod
    def from_session(
        cls,
        session: Session,
        endpoint: str = "",
        interface: str = "public",
        region: str = "",
        timeout: float = TIMEOUT,
        retries: Retries | None = None,
    ) -> Self:
        """Return a client with the identity of a keystoneauth1 session, which the caller closes.

        :param endpoint: the controller's URL; empty for service type ``sluice`` of the catalogue
        """
        made = cls.__new__(cls)
        made._use(KeystoneSession(session, endpoint, interface, region, timeout), retries)
        return made

    def _use(self, session: HttpSession, retries: Retries | None) -> None:
        self._transport = Transport(session, retries or Retries())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    @calls("create_policies", text="policy")
    def create_policy(self, text: str, wait: float = 0.0) -> Data:
        """Create the policy of ``text``, one sentence, and return it.

        For several sentences it returns ``{"policies": [...]}``; :meth:`create_policies` always returns a list.

        :param wait: seconds (at most 30) to wait until all live nodes have acknowledged it
        """

    def create_policies(self, text: str, wait: float = 0.0) -> list[Data]:
        """Create the policies of the sentences of ``text``, all of them or none, and return them."""
        created = self.create_policy(text, wait)
        policies: list[Data] = created.get("policies", [created])
        return policies

    @calls("check_policies", "policies", text="policy")
    def check_policy(self, text: str, replaces: str = "") -> list[Data]:
        """Return the policies that the sentences of ``text`` would become, their meaning and the policies that they
        would override; changes nothing.

        :param replaces: the id of the policy that the text would replace
        """

    @calls("complete_policy", text="policy")
    def complete_policy(self, text: str, position: int) -> Data:
        """Return the ``candidates`` for the part of ``text`` from ``start`` to ``end`` around ``position``."""

    def policies(
        self, tenant: str = "", state: str = "", text: str = "", order: str = "", page: int = PAGE
    ) -> Iterator[Data]:
        """Yield all policies, oldest first unless ``order`` is ``newest``, fetched ``page`` at a time.

        :param text: only those whose sentence contains it, in any case
        """
        return self.collection("/policies").list(tenant=tenant, state=state, text=text, order=order, limit=page)

    @calls("list_policies", one_page=True)
    def policy_page(self, **query: Any) -> Data:
        """Return one page of ``policies``, with the ``total``, the ``next_marker`` and the ``previous_marker``.

        :param query: ``limit``, ``marker`` or ``before``, and the arguments of :meth:`policies`
        """

    @calls("show_policy")
    def policy(self, policy_id: str) -> Data:
        """Return one policy, the observed values of its metrics, and which nodes enforce it."""

    def delete_policy(
        self, policy_id: str, keep: bool = False, version: int | None = None, wait: float = 0.0
    ) -> Data | None:
        """Delete a policy and its assignments.

        :param keep: keep the assignments in force, under a new static policy, which is returned
        :param version: refuse (412) when the policy has another version
        """
        # with ``keep`` the caller needs the answer, which a second attempt could not return
        etag = "" if version is None else f'"{version}"'
        deleted: Data | None = self.call(
            "delete_policy", policy_id=policy_id, keep=keep, wait=wait, etag=etag, once=keep
        )
        return deleted

    @calls("list_nodes", list)
    def nodes(self) -> list[Data]:
        """Return all nodes and their last reports."""

    @calls("show_node")
    def node(self, node: str) -> Data:
        """Return one node, and its last report."""

    @calls("forget_node")
    def forget_node(self, node: str) -> None:
        """Delete a node that was removed."""

    @calls("adopt_history")
    def adopt(self) -> Data:
        """Let all nodes accept the current history, after Redis was wiped or failed over."""

    @calls("list_filters", list)
    def filters(self) -> list[Data]:
        """Return the filters that the cluster can run."""

    @calls("list_registered_filters", list)
    def known_filters(self) -> list[Data]:
        """Return every keyword of DO SET, also those that the cluster cannot enforce."""

    @calls("show_filter")
    def filter(self, keyword: str) -> Data:
        """Return a filter that was registered at run time."""

    def filter_and_etag(self, keyword: str) -> tuple[Data, str]:
        """Return the same, and its ``ETag`` for :meth:`update_filter`."""
        return self.collection("/filters").get_with_etag(keyword)

    @calls("register_filter", description="whole_body")
    def register_filter(self, description: Mapping[str, Any]) -> Data:
        """Register a filter for an isolated environment; without code it cannot be used yet.

        :param description: ``keyword``, ``environment``, ``language``, ``main``, ``reverse``,
            ``capabilities``, ``parameters``, ``help``
        """

    @calls("update_filter", changes="whole_body")
    def update_filter(self, keyword: str, changes: Mapping[str, Any], etag: str = "") -> Data:
        """Change the description of a registered filter; other fields stay.

        :param etag: refuse (412) when the registration has another one
        """

    def upload_filter(self, keyword: str, code: bytes | IO[bytes], wait: float = 0.0, etag: str = "") -> Data:
        """Upload the code of a registered filter, or another revision of it; the controller verifies the digest.

        :param code: a file that can be rewound is read twice: for its digest, and when it is sent
        :param wait: seconds (at most 30) to wait until all live nodes have acknowledged it
        :param etag: refuse (412) when the registration has another one
        """
        return self.filter_code.upload(keyword, code, wait, etag)

    @property
    def filter_code(self) -> Uploads:
        """The code of registered filters."""
        return self.uploads("/filters")

    @property
    def dependency_data(self) -> Uploads:
        """The data of files that registered filters need; they have no earlier revisions."""
        return self.uploads("/filters/dependencies")

    @property
    def metric_code(self) -> Uploads:
        """The code of uploaded workload metrics; the first upload makes a metric, which is not measured yet."""
        return self.uploads("/registry/metrics")

    @property
    def controller_code(self) -> Uploads:
        """The code of global controllers; the first upload makes a controller, which is stopped."""
        return self.uploads("/controllers")

    @calls("unregister_filter")
    def unregister_filter(self, keyword: str, force: bool = False) -> None:
        """Delete a registered filter that no policy uses.

        :param force: even if objects stored through it cannot be read any more
        """

    @calls("list_metrics", list)
    def metrics(self) -> list[Data]:
        """Return the workload metrics that policies can watch, built in, registered and uploaded."""

    @calls("show_metric", name="metric")
    def metric(self, name: str) -> Data:
        """Return one workload metric, with the revisions of its code if it was uploaded."""

    @calls("list_controllers", list)
    def controllers(self) -> list[Data]:
        """Return the global controllers and their states."""

    @calls("show_controller", name="controller")
    def controller(self, name: str) -> Data:
        """Return one global controller: its state, where it runs, and the revisions of its code."""

    @calls("delete_controller", name="controller")
    def delete_controller(self, name: str) -> None:
        """Delete a controller and its assignments."""

    @calls("list_terms", list)
    def terms(self) -> list[Data]:
        """Return the terms for types of objects in sentences, such as DOCS."""

    @calls("health", accepted=(503,))
    def health(self) -> Mapping[str, Any]:
        """Return the state of the controller and the services that it depends on; needs no token."""
