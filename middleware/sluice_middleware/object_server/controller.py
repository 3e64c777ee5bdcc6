"""``egg:openstack-sluice#object``: Swift's object server with transforms inside its disk files.

Place in the pipeline.  It replaces ``egg:swift#object`` in ``[app:object-server]``; ``diskfile_module`` of the
storage policies in swift.conf names the disk files.  A paste filter cannot do this: SSYNC sends its requests directly
to the application, past all filters.

Theory of operation.  For the time of a request the controller notes which transform a PUT asks for, whether the
request is replication, and whether a home stores a state (:mod:`request_context`); disk files that are opened or
committed meanwhile read these notes.  BATCH notes that it is internal.  HEAD needs none.  A refusal of a disk file
becomes a 409 (``sysmeta.REFUSED``): a 5xx would count against the device, and Swift's proxy would soon suppress it for
all objects.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from sluice_core.errors import DecodeError
from sluice_middleware.object_server.batches import ObjectBatches
from sluice_middleware.object_server.diskfile.disk_filters import Refused, Unreadable
from sluice_middleware.object_server.diskfile.request_context import (
    OF_CLIENTS,
    REPLICATION_ENV,
    current_request,
    request_scope,
    requested_context,
)
from sluice_middleware.object_server.voter.lock import Busy
from sluice_middleware.object_server.votes import ObjectVotes
from sluice_middleware.swift import diskfile_api as swift
from sluice_middleware.swift import object_batches, object_votes
from sluice_middleware.swift.diskfile_api import public
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.sysmeta import HOME_ENV, NODE_ENV

#: Option: address of the node's `sluice-objectd`, for proxies that look for the home of an object.
DAEMON: Final = "sluice_objectd"
#: Why a disk file does not store what it got.
_NOT_STORED: Final = (Refused, Busy)


class ObjectController(swift.ObjectController):  # type: ignore[misc]
    """Swift's controller, with methods that return Sluice's refusals, ``BATCH`` and ``VOTE``."""

    def __init__(self, conf: dict[str, Any], logger: Any = None) -> None:
        super().__init__(conf, logger)
        self._batches = ObjectBatches(self.get_diskfile, frozenset(self.allowed_headers), self.logger)
        self._votes = ObjectVotes(self.get_diskfile, self.logger, conf.get(DAEMON, ""))

    @public  # type: ignore[untyped-decorator]
    def BATCH(self, request: Any) -> Any:
        """HEADs of many objects, or contractions of many (``sluice_middleware.swift.object_batches``)."""
        return self._answer_list(request, object_batches, self._batches.answer)

    @public  # type: ignore[untyped-decorator]
    def VOTE(self, request: Any) -> Any:
        """What homes ask about many objects (``sluice_middleware.swift.object_votes``)."""
        return self._answer_list(request, object_votes, self._votes.answer)

    @public  # type: ignore[untyped-decorator]
    def PUT(self, request: Any) -> Any:
        """As Swift's PUT, or a refusal after the body; a home's may be refused before."""
        if HOME_ENV in request.environ:
            return self._votes.store(request, super().PUT)
        return self._answer(super().PUT, request, _NOT_STORED)

    @public  # type: ignore[untyped-decorator]
    def POST(self, request: Any) -> Any:
        """As Swift's POST, or a refusal."""
        return self._answer(super().POST, request, _NOT_STORED)

    @public  # type: ignore[untyped-decorator]
    def DELETE(self, request: Any) -> Any:
        """As Swift's DELETE, or a refusal."""
        if HOME_ENV in request.environ:
            return self._votes.store(request, super().DELETE)
        return self._answer(super().DELETE, request, _NOT_STORED)

    @public  # type: ignore[untyped-decorator]
    def GET(self, request: Any) -> Any:
        """As Swift's GET, or a refusal before the body."""
        return self._answer(super().GET, request, Unreadable)

    def _answer_list(self, request: Any, contract: ModuleType, answer: Callable[[Any], Any]) -> Any:
        """Return the response to a list of requests, as ``contract`` encodes and limits it."""
        length = request.content_length or 0
        if length > contract.LARGEST:
            text = f"a {contract.METHOD} of {length} bytes, expected {contract.LARGEST} at most\n"
            return swift.HTTPRequestEntityTooLarge(request=request, body=text)
        try:
            requests = contract.decode_requests(request.environ["wsgi.input"].read(length))
        except DecodeError as error:
            return swift.HTTPBadRequest(request=request, body=f"{error}\n")
        body = contract.encode_answers(answer(requests))
        return swift.Response(request=request, body=body, content_type="application/json")

    def _answer(
        self,
        method: Callable[[Any], Any],
        request: Any,
        refused: type[Exception] | tuple[type[Exception], ...],
    ) -> Any:
        """Return the response of Swift's ``method``, or a refusal where a disk file raises ``refused``."""
        env = request.environ
        try:
            if NODE_ENV in env or REPLICATION_ENV in env or current_request() is not OF_CLIENTS:
                with request_scope(requested_context(env)):
                    return method(request)
            return method(request)  # by far the most frequent
        except refused as refusal:
            return self._refuse(request, refusal)

    def _refuse(self, request: Any, reason: Exception) -> Any:
        """409: a 5xx would count against the device, and soon suppress it for all objects."""
        self.logger.error("sluice: %s %s refused: %s", request.method, request.path, reason)
        words = sysmeta.reason_header(reason)
        answer = swift.HTTPConflict(request=request, headers={sysmeta.REFUSED: words}, body=words)
        answer.status = sysmeta.REFUSED_STATUS
        return answer


def app_factory(global_conf: dict[str, Any], **local_conf: str) -> ObjectController:
    """Paste's entry point."""
    return ObjectController({**global_conf, **local_conf})
