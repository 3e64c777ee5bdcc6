"""``egg:openstack-sluice#objects``: sends requests for objects with a home to that home.

Place in the pipeline: right of authentication, quotas and ``copy``, directly left of ``proxy-logging`` and
``proxy-server``, so that it sees what these would see.  It authorizes by the access lists of the container, as Swift's
object controller does.

A container has homes when its system metadata has the mark :data:`MARK`; then each PUT, POST, DELETE, GET and HEAD of
an object in it goes to the object's home.  All other requests pass.

The home is found by a look at the object's devices: the daemon that has a promise, or else that of the first
device which answers.  A daemon that is not the home any more names the present one; one that does not connect is
followed by the next, which takes the object over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from sluice_core.errors import PeerError
from sluice_middleware.log import Logger, open_logger
from sluice_middleware.swift import internal_api as swift
from sluice_middleware.swift import proxy_api
from sluice_middleware.wsgi.response import App, Env
from sluice_objects.api import LARGEST_STATE
from sluice_objects.writes import etag_of
from sluice_objects_swift.home_app import CALLER, HOME
from sluice_objects_swift.home_finder import HomeFinder
from sluice_objects_swift.http import NotAnswered, NotSent, Reply, Timeouts, send
from sluice_objects_swift.place import Place

#: Lower-case name, in a container's system metadata, of the classes that its objects may have; present when the
#: container has or had homes.
MARK: Final = "sluice-objects"
_METHODS: Final = frozenset(("GET", "HEAD", "PUT", "POST", "DELETE"))
_READS: Final = frozenset(("GET", "HEAD"))
#: Daemons that are tried for one request.
_ATTEMPTS: Final = 4
#: A home may have to take the object over, and waits for its devices.
_TIMEOUTS: Final = Timeouts(0.5, 15.0)
_MOVED: Final = 307
_HOP: Final = frozenset(("connection", "transfer-encoding", "date", "content-length"))
#: What the home need not know of a client.
_SECRETS: Final = frozenset(("x-auth-token", "x-storage-token", "x-service-token", "authorization", "cookie"))


class ObjectsFilter:
    """The WSGI filter."""

    def __init__(self, app: App, finder: HomeFinder, logger: Logger) -> None:
        self._app = app
        self._finder = finder
        self._logger = logger

    def __call__(self, env: Env, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if env["REQUEST_METHOD"] not in _METHODS:
            return self._app(env, start_response)
        request = proxy_api.Request(env)
        try:
            _, account, container, name = request.split_path(4, 4, True)
        except ValueError:
            return self._app(env, start_response)
        info = proxy_api.get_container_info(env, self._app, swift_source="SLU")
        if MARK not in info.get("sysmeta", {}):
            return self._app(env, start_response)
        place = Place(int(info["storage_policy"] or 0), account, container, name)
        response = self._denied(request, info) or self._respond(request, place)
        body: Iterable[bytes] = response(env, start_response)
        return body

    def _denied(self, request: Any, info: Mapping[str, Any]) -> Any:
        """The refusal of a client without the right; methods that are called need the right to write."""
        authorize = request.environ.get("swift.authorize")
        request.acl = info["read_acl"] if request.method in _READS else info["write_acl"]
        return authorize(request) if authorize else None

    def _respond(self, request: Any, place: Place) -> Any:
        length = request.content_length
        if length is not None and length > LARGEST_STATE:
            text = f"an object of {length} bytes, expected at most {LARGEST_STATE} in a container with homes\n"
            return proxy_api.HTTPRequestEntityTooLarge(request=request, body=text)
        body = request.environ["wsgi.input"].read(LARGEST_STATE + 1)
        if length is not None and len(body) < length:  # the client has gone
            return proxy_api.Response(request=request, status=499)
        etag = proxy_api.normalize_etag(request.headers.get("Etag")) if request.method == "PUT" else None
        if etag and etag != etag_of(body):
            return proxy_api.HTTPUnprocessableEntity(request=request)
        try:
            reply = self._ask(request, place, body)
        except PeerError as error:
            return proxy_api.HTTPServiceUnavailable(request=request, body=f"{error}\n", headers={"Retry-After": "1"})
        headers = {name.title(): value for name, value in reply.headers.items() if name not in _HOP}
        status = f"{reply.status} {reply.reason}"
        response = proxy_api.Response(request=request, status=status, headers=headers, body=reply.body)
        if request.method == "HEAD":
            response.content_length = int(reply.headers.get("content-length", 0))
        return response

    def _ask(self, request: Any, place: Place, body: bytes) -> Reply:
        """The answer of the object's home.

        :raises PeerError: when there is none; a request that was sent once is not sent again, since it may have had its
            effect
        """
        failed: set[str] = set()
        for _ in range(_ATTEMPTS):
            address = self._finder.find(place, failed)
            if address is None:
                break
            try:
                reply = self._send(address, request, place, body)
            except NotSent as error:
                self._logger.warning("sluice: the home of `%s`: %s", place.path, error)
                self._finder.note(place, "")
                failed.add(address)
                continue
            except NotAnswered:
                self._finder.note(place, "")
                raise
            self._finder.note(place, reply.headers.get(HOME.lower(), "") if reply.status == _MOVED else address)
            if reply.status != _MOVED:
                return reply
        raise PeerError("no storage node serves the object")

    def _send(self, address: str, request: Any, place: Place, body: bytes) -> Reply:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP | _SECRETS}
        headers[CALLER] = _caller(request.environ)
        path, query = quote(f"/{place.policy}/{place.path}"), request.environ.get("QUERY_STRING", "")
        return send(address, request.method, path, headers, body, _TIMEOUTS, query)


def _caller(env: Env) -> str:
    """The id of the client's user; empty for an anonymous one."""
    identity = env.get("keystone.identity") or {}
    user = identity.get("user") or ()
    return str(user[0]) if user else str(env.get("REMOTE_USER") or "").partition(",")[0]


def filter_factory(global_conf: Mapping[str, Any], **local_conf: str) -> Callable[[App], ObjectsFilter]:
    """Paste's entry point."""
    conf = {**global_conf, **local_conf}
    logger = open_logger(conf, "objects")
    rings: dict[int, Any] = {}

    def ring(policy: int) -> Any:
        if policy not in rings:
            name = swift.POLICIES.get_by_index(policy).ring_name
            rings[policy] = swift.Ring(conf.get("swift_dir", "/etc/swift"), ring_name=name)
        return rings[policy]

    finder = HomeFinder(ring, logger)
    return lambda app: ObjectsFilter(app, finder, logger)
