"""The client of konnectors: services on the machines that use volumes, called as the service user.

A konnector that is unreachable, or fails, is a :class:`PeerError`, after which the change may have happened.  A refusal
is a :class:`CallerError` with its reason and its status.  Messages contain no body, which may hold a passphrase.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from keystoneauth1 import exceptions as ksa
from keystoneauth1.session import Session

from sluice_core.errors import CallerError, Conflict, NotFound, PeerError
from sluice_core.messages.nodes import NodeReport
from sluice_core.process.logs import REQUEST_ID, current_request
from sluice_volumes.messages import RbdLocality

#: Seconds for an answer; attaching starts some processes, and detaching waits until all writes are done.
TIMEOUT: Final = 60.0
_REFUSALS: Final = {404: NotFound, 409: Conflict}


class KonnectorAway(PeerError):
    """The konnector does not answer: a node has none, or it cannot be reached."""


class Konnector:
    """The konnector of one node, at ``url``.

    :param session: with the service user's token
    :param node: the konnector's node, for messages
    :param ca_file: certificate authorities of konnectors' certificates; empty: those of the system
    """

    def __init__(self, session: Session, url: str, node: str, ca_file: str = "") -> None:
        self._session = session
        self._url = url.rstrip("/")
        self._node = node
        self._verify = ca_file or True

    def connector(self, export: str, filters: Sequence[str]) -> dict[str, Any]:
        """Return the description of the machine that Cinder needs for an attachment.

        :param export: its kind of export for users
        :param filters: keywords of its stack
        """
        asked = urlencode([("export", export), *(("filter", one) for one in filters)])
        properties = self._ask("GET", f"/connector?{asked}")
        if not isinstance(properties.get("host"), str) or not properties["host"]:
            raise PeerError(f"konnector of node `{self._node}` names no `host` in its connector")
        return properties

    def volume(self, volume_id: str) -> dict[str, Any]:
        """Return a volume that is attached there.

        :raises NotFound: when it is not attached there
        """
        return self._ask("GET", f"/volumes/{quote(volume_id, safe='')}")

    def attach(self, volume_id: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Attach a volume; return it with its ``device`` and its ``size`` for users, in bytes.

        A repeated call changes nothing.

        :raises Conflict: when it is attached there with other parameters
        """
        return self._ask("PUT", f"/volumes/{quote(volume_id, safe='')}", wanted)

    def locality(self, volume_id: str) -> RbdLocality | None:
        """Return where a volume is stored; None if not in Ceph.

        :raises NotFound: when it is not attached there
        """
        found = self._ask("GET", f"/volumes/{quote(volume_id, safe='')}/locality").get("rbd")
        return None if found is None else RbdLocality.from_data(found)

    def resize(self, volume_id: str, size: int = 0) -> bool:
        """Let an extended volume show its size; return False when its user sees it after the next attach.

        :param size: size for the user in bytes, if that is not all; else 0
        :raises NotFound: when it is not attached there
        """
        body = {"size": size} if size else None
        return self._ask("PUT", f"/volumes/{quote(volume_id, safe='')}/size", body).get("reattach") is False

    def detach(self, volume_id: str) -> None:
        """Detach a volume.

        :raises NotFound: when it is not attached there
        :raises Conflict: when its device is in use, naming the user
        """
        self._ask("DELETE", f"/volumes/{quote(volume_id, safe='')}")

    def confirm(self, volume_id: str, attachment: str) -> None:
        """Confirm the attachment of a volume that the konnector took over, so that it is attached again.

        :raises NotFound: when it is not attached there by that attachment
        """
        self._ask("PUT", f"/volumes/{quote(volume_id, safe='')}/confirmed", {"attachment": attachment})

    def revoke(self, volume_id: str, attachment: str) -> None:
        """Stop the service of a volume whose attachment was ended elsewhere; its users get I/O errors.

        :raises NotFound: when it is not attached there by that attachment
        """
        self._ask("PUT", f"/volumes/{quote(volume_id, safe='')}/revoked", {"attachment": attachment})

    def measure(self, volume_id: str, seconds: int) -> dict[str, Any]:
        """Write and read a whole volume with fio, ``seconds`` for each of four figures; a running measurement
        continues.

        :raises NotFound: when it is not attached there
        :raises Conflict: when it cannot be measured, or fio is missing there
        """
        return self._ask("POST", f"/volumes/{quote(volume_id, safe='')}/measure", {"seconds": seconds})

    def measurement(self, volume_id: str) -> dict[str, Any]:
        """Return its progress: ``state``, ``phase``, and at the end the figures, or the ``reason`` why there are none.

        :raises NotFound: when it is not attached there, or not measured
        """
        return self._ask("GET", f"/volumes/{quote(volume_id, safe='')}/measure")

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        what = f"konnector of node `{self._node}`"
        data = None if body is None else json.dumps(dict(body))
        headers = {"Content-Type": "application/json"}
        if current_request():
            headers[REQUEST_ID] = current_request()
        try:
            answer = self._session.request(
                self._url + path, method, raise_exc=False, authenticated=True, log=False, redirect=False,
                timeout=TIMEOUT, data=data, headers=headers, verify=self._verify,
            )  # fmt: skip
        except ksa.SSLError as error:
            raise PeerError(f"{what} has a certificate that `konnector_ca_file` does not vouch for") from error
        except OSError as error:
            raise PeerError(f"option `konnector_ca_file`: {error}") from error
        except ksa.ConnectFailure as error:
            raise KonnectorAway(f"{what} cannot be asked: {type(error).__name__}") from error
        except ksa.ClientException as error:
            raise PeerError(f"{what} cannot be asked: {type(error).__name__}") from error
        answered = _object(answer.content)
        if answer.status_code in (401, 403) or answer.status_code >= 500:
            raise PeerError(f"{what} answers {answer.status_code}: {answered.get('error', '')}")
        if answer.status_code >= 400:
            raise _REFUSALS.get(answer.status_code, CallerError)(f"{what}: {answered.get('error', answer.status_code)}")
        return answered


class NodeKonnectors:
    """The konnectors of all nodes, by node.

    :param session: as of :class:`Konnector`, and so is ``ca_file``
    :param urls: returns the URL of each node's konnector
    """

    def __init__(self, session: Session, urls: Callable[[], Mapping[str, str]], ca_file: str = "") -> None:
        self._session = session
        self._urls = urls
        self._ca_file = ca_file

    def __call__(self, node: str) -> Konnector:
        """Return the konnector of ``node``.

        :raises KonnectorAway: when no node of that name has one
        """
        urls = self._urls()
        if node not in urls:
            raise KonnectorAway(f"node `{node}` has no konnector now, {closest(node, urls)}")
        return Konnector(self._session, urls[node], node, self._ca_file)


def konnector_urls(reports: Iterable[NodeReport]) -> dict[str, str]:
    """Return node → URL of its konnector, for nodes with one."""
    return {one.node: one.konnector for one in reports if one.konnector}


def closest(node: str, known: Iterable[str]) -> str:
    """Return the hint for a caller who named ``node``, which is not among ``known``."""
    names = sorted(known)
    near = difflib.get_close_matches(node, names, 1)
    if near:
        return f"did you mean `{near[0]}`"
    return f"expected {', '.join(f'`{one}`' for one in names)}" if names else "and neither has any other node"


def _object(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
