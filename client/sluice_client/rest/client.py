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
    """Speaks to the controller at ``url``; each thread needs its own.

    Answers are the controller's JSON as it comes; ``GET /schema`` describes it.  Every method raises
    :class:`~sluice_client.ApiError` when the controller refuses, and
    :class:`~sluice_client.Unreachable` when it does not answer.

    ``filter_code``, ``metric_code``, ``controller_code`` and ``dependency_data`` bring code and go back from it.

    :param timeout: seconds for connecting, and for each answer
    :param retries: how often calls are tried again that mean the same when they happen twice
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
        """A client with the identity of a keystoneauth1 session, which stays its owner's to close.

        :param endpoint: where the controller is; empty for service type ``sluice`` of the catalogue
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
        """The policy that ``text``, one sentence, became.

        For several sentences it is ``{"policies": [...]}``; :meth:`create_policies` always gives a list.

        :param wait: seconds (at most 30) to wait until all live nodes have acknowledged it
        """

    def create_policies(self, text: str, wait: float = 0.0) -> list[Data]:
        """The policies that the sentences of ``text`` became: all of them, or an error and none."""
        created = self.create_policy(text, wait)
        policies: list[Data] = created.get("policies", [created])
        return policies

    @calls("check_policies", "policies", text="policy")
    def check_policy(self, text: str, replaces: str = "") -> list[Data]:
        """What the sentences of ``text`` would become, what they mean and whom they would override; changes nothing.

        :param replaces: the id of the policy whose text it shall be
        """

    @calls("complete_policy", text="policy")
    def complete_policy(self, text: str, position: int) -> Data:
        """The ``candidates`` for what stands in ``text`` from ``start`` to ``end``, which are around ``position``."""

    def policies(
        self, tenant: str = "", state: str = "", text: str = "", order: str = "", page: int = PAGE
    ) -> Iterator[Data]:
        """All policies, oldest first unless ``order`` is ``newest``, fetched ``page`` at a time.

        :param text: only those in whose sentence it stands, in any case
        """
        return self.collection("/policies").list(tenant=tenant, state=state, text=text, order=order, limit=page)

    @calls("list_policies", one_page=True)
    def policy_page(self, **query: Any) -> Data:
        """One page of ``policies``, with the ``total``, the ``next_marker`` and the ``previous_marker``.

        :param query: ``limit``, ``marker`` or ``before``, and what :meth:`policies` takes
        """

    @calls("show_policy")
    def policy(self, policy_id: str) -> Data:
        """One policy, what its actor observes, and which nodes enforce it."""

    def delete_policy(
        self, policy_id: str, keep: bool = False, version: int | None = None, wait: float = 0.0
    ) -> Data | None:
        """Delete a policy and take back what it set.

        :param keep: leave what is in force, under a new static policy, which is returned
        :param version: refuse (412) when the policy has another version meanwhile
        """
        # whoever keeps wants to know what was kept, and a second try could not say
        etag = "" if version is None else f'"{version}"'
        deleted: Data | None = self.call(
            "delete_policy", policy_id=policy_id, keep=keep, wait=wait, etag=etag, once=keep
        )
        return deleted

    @calls("list_nodes", list)
    def nodes(self) -> list[Data]:
        """All nodes and what they reported last."""

    @calls("show_node")
    def node(self, node: str) -> Data:
        """One node, and what it reported last."""

    @calls("forget_node")
    def forget_node(self, node: str) -> None:
        """Forget a node that is no more."""

    @calls("adopt_history")
    def adopt(self) -> Data:
        """Tell all nodes to take the current history as it is, after Redis was wiped or failed over."""

    @calls("list_filters", list)
    def filters(self) -> list[Data]:
        """The filters that the cluster can run."""

    @calls("list_registered_filters", list)
    def known_filters(self) -> list[Data]:
        """Every keyword of DO SET, also those that the cluster cannot enforce."""

    @calls("show_filter")
    def filter(self, keyword: str) -> Data:
        """A filter that was registered at run time."""

    def filter_and_etag(self, keyword: str) -> tuple[Data, str]:
        """The same, and its ``ETag`` for :meth:`update_filter`."""
        return self.collection("/filters").get_with_etag(keyword)

    @calls("register_filter", description="whole_body")
    def register_filter(self, description: Mapping[str, Any]) -> Data:
        """Register a filter for an isolated environment; without code it cannot be used yet.

        :param description: ``keyword``, ``environment``, ``language``, ``main``, ``reverse``,
            ``capabilities``, ``parameters``, ``help``
        """

    @calls("update_filter", changes="whole_body")
    def update_filter(self, keyword: str, changes: Mapping[str, Any], etag: str = "") -> Data:
        """Change the description of a registered filter; what is not named stays.

        :param etag: refuse (412) when the registration has another one meanwhile
        """

    def upload_filter(self, keyword: str, code: bytes | IO[bytes], wait: float = 0.0, etag: str = "") -> Data:
        """Give a registered filter its code, or another revision of it; the digest is verified there.

        :param code: a file that can be rewound is read twice: for its digest, and when it is sent
        :param wait: seconds (at most 30) to wait until all live nodes have acknowledged it
        :param etag: refuse (412) when the registration has another one meanwhile
        """
        return self.filter_code.upload(keyword, code, wait, etag)

    @property
    def filter_code(self) -> Uploads:
        """The code of registered filters."""
        return self.uploads("/filters")

    @property
    def dependency_data(self) -> Uploads:
        """The data of files that registered filters need; they have no revisions to go back to."""
        return self.uploads("/filters/dependencies")

    @property
    def metric_code(self) -> Uploads:
        """The code of workload metrics that are uploaded; the first makes a metric, which is not measured yet."""
        return self.uploads("/registry/metrics")

    @property
    def controller_code(self) -> Uploads:
        """The code of global controllers; the first makes a controller, which is stopped."""
        return self.uploads("/controllers")

    @calls("unregister_filter")
    def unregister_filter(self, keyword: str, force: bool = False) -> None:
        """Forget a registered filter that no policy uses.

        :param force: even if objects stored through it cannot be read any more
        """

    @calls("list_metrics", list)
    def metrics(self) -> list[Data]:
        """The workload metrics that policies can watch, built in, registered and uploaded."""

    @calls("show_metric", name="metric")
    def metric(self, name: str) -> Data:
        """One workload metric, with the revisions of its code where it is uploaded."""

    @calls("list_controllers", list)
    def controllers(self) -> list[Data]:
        """The global controllers and how they fare."""

    @calls("show_controller", name="controller")
    def controller(self, name: str) -> Data:
        """One global controller: its state, where it runs, and the revisions of its code."""

    @calls("delete_controller", name="controller")
    def delete_controller(self, name: str) -> None:
        """Forget a controller and take back what it set."""

    @calls("list_terms", list)
    def terms(self) -> list[Data]:
        """The terms that sentences know for types of objects, such as DOCS."""

    @calls("health", accepted=(503,))
    def health(self) -> Mapping[str, Any]:
        """How the controller and what it depends on fare; needs no token."""
