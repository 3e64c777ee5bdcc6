"""Internal requests to Swift, and the Swift proxy application through which a daemon makes them.

They pass below gatekeeper and authorization, as those of Swift's own daemons.

Containers with reserved names (older versions of objects) are listed and read like others, and backend headers are
sent.  Requests are marked as replication, so that they count for no tenant's bandwidth, have the I/O level of
replication, and put no second entries into the queue of expiring objects.
"""

from __future__ import annotations

import configparser
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from sluice_core.errors import PeerError
from sluice_core.options import Option, OptionError, read_files
from sluice_core.process.logs import LOG_FORMAT
from sluice_middleware.swift import internal_api
from sluice_middleware.swift.proxy_api import close_if_possible
from sluice_middleware.wsgi.backend_headers import SOURCE
from sluice_middleware.wsgi.response import App, Env, UpstreamResponse
from sluice_middleware.wsgi.worker_context import OPTIONS as WORKER_OPTIONS

Row = dict[str, Any]

_LONGEST_LISTING: Final = 16 << 20
_BACKEND: Final = {"HTTP_X_BACKEND_ALLOW_RESERVED_NAMES": "true", "HTTP_X_BACKEND_REPLICATION": "True"}

#: Options of Redis.
REDIS_OPTIONS: Final = (
    Option("redis_url", "redis://127.0.0.1:6379/0", "where Redis is"),
    Option("redis_prefix", "sluice", "what all of this cluster's keys in Redis begin with"),
)
#: Options of the node's snapshot, keys and code, and of the log.
NODE_OPTIONS: Final = (
    *(option for option in WORKER_OPTIONS if option.name != "agent_socket"),
    Option("log_level", "info", "debug, info, warning or error"),
    LOG_FORMAT,
)

#: Swift creates its internal accounts with the first object.
_SWIFT_DEFAULTS: Final = {"account_autocreate": "true"}
#: The sections in the same file: a proxy application that only the daemon uses.
SWIFT_SAMPLE: Final = """
[DEFAULT]
swift_dir = /etc/swift

[pipeline:main]
# no gatekeeper, no authorization, nothing that interprets objects, and no Sluice
pipeline = cache proxy-server

[filter:cache]
use = egg:swift#memcache

[app:proxy-server]
use = egg:swift#proxy
"""


def make_environment(method: str, *path: str, query: Mapping[str, str] | None = None) -> Env:
    """An internal request for account, container and object in ``path``, which are text with surrogates."""
    raw = "/".join(("", "v1", *path)).encode("utf-8", "surrogateescape")
    return {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": raw.decode("latin-1"),
        "RAW_PATH_INFO": quote(raw),
        "QUERY_STRING": urlencode(query or {}, errors="surrogateescape"),
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.0",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "localhost",
        "HTTP_USER_AGENT": "sluice",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "swift.authorize_override": True,
        "swift_owner": True,  # else the proxy removes the headers of container-sync
        "swift.source": SOURCE,
        "swift.infocache": {},
        **_BACKEND,
    }


class SwiftClient:
    """Listings of accounts and containers.

    :param app: Swift's proxy application without gatekeeper, authorization and Sluice
    """

    def __init__(self, app: App) -> None:
        self.app = app

    def list_containers(self, account: str, marker: str, limit: int) -> Iterator[list[Row]]:
        """Pages of the rows of an account's containers behind ``marker``, those with reserved names included.

        :raises PeerError: when Swift does not answer
        """
        return self._list((account,), marker, "", limit)

    def list_objects(self, account: str, container: str, marker: str, prefix: str, limit: int) -> Iterator[list[Row]]:
        """Pages of the rows of a container's objects behind ``marker``; none when the container does not exist.

        :raises PeerError: when Swift does not answer
        """
        return self._list((account, container), marker, prefix, limit)

    def container_headers(self, account: str, container: str) -> dict[str, str] | None:
        """The headers of a container by their names in lower case; None when it does not exist.

        :raises PeerError: when Swift does not answer
        """
        answer = UpstreamResponse(self.app, make_environment("HEAD", account, container))
        close_if_possible(answer.body)
        if answer.code == 404:
            return None
        if answer.code != 204:
            raise PeerError(f"swift answered `{answer.status}` to a HEAD of container `{container}`")
        return {name.lower(): value for name, value in answer.headers}

    def _list(self, path: tuple[str, ...], marker: str, prefix: str, limit: int) -> Iterator[list[Row]]:
        while True:
            rows = self._page(path, marker, prefix, limit)
            if rows:
                yield rows
            if len(rows) < limit:
                return
            marker = rows[-1]["name"]

    def _page(self, path: tuple[str, ...], marker: str, prefix: str, limit: int) -> list[Row]:
        query = {"format": "json", "limit": str(limit), "marker": marker, "prefix": prefix}
        env = make_environment("GET", *path, query={name: value for name, value in query.items() if value})
        env["HTTP_ACCEPT"] = "application/json"
        answer = UpstreamResponse(self.app, env)
        try:
            if answer.code in (404, 410):  # 410: an account that was deleted
                return []
            if answer.code not in (200, 204):
                raise PeerError(f"swift answered `{answer.status}` to a listing of `{'/'.join(path)}`")
            body = bytearray()
            for piece in answer.body:
                body += piece
                if len(body) > _LONGEST_LISTING:
                    raise PeerError(f"a listing of `{'/'.join(path)}` has more than {_LONGEST_LISTING} bytes")
        finally:
            close_if_possible(answer.body)
        rows: list[Row] = json.loads(bytes(body) or b"[]")
        return rows


def read_section(section: str, options: Sequence[Option], *paths: str | Path) -> dict[str, Any]:
    """The options of a section in configuration files, whose ``[DEFAULT]`` is Swift's.

    :raises OptionError: when a file cannot be read or an option in it cannot be used
    """
    return read_files(options, paths, section, default_section="")


def load_app(*paths: str | Path) -> App:
    """Load Swift's proxy application from the same files.

    :raises OptionError: when they describe none, or one with a gatekeeper, which removes Sluice's headers
    """
    try:
        app: App = internal_api.loadapp(_paste_source(paths), _SWIFT_DEFAULTS, allow_modify_pipeline=False)
        internal_api.InternalClient.check_gatekeeper_not_loaded(app)
    except (LookupError, ValueError, OSError, configparser.Error) as error:
        named = ", ".join(map(str, paths))
        raise OptionError(f"`{named}` describes no proxy application: {error}") from error
    return app


def _paste_source(paths: Sequence[str | Path]) -> Any:
    """The source from which Swift loads an application: one file, or the text of several, whose later options win."""
    if len(paths) == 1:
        return str(Path(paths[0]).resolve())
    merged = configparser.RawConfigParser(default_section="", strict=False)
    merged.optionxform = str  # type: ignore[assignment,method-assign]
    merged.read(paths, encoding="utf-8")
    text = io.StringIO()
    merged.write(text)
    return internal_api.ConfigString(text.getvalue())


def final_app(app: App) -> Any:
    """The end of the pipeline of :func:`load_app`: Swift's proxy itself, which has the rings."""
    return app._pipeline_final_app  # type: ignore[attr-defined]  # as Swift's InternalClient takes it


def cache_of(app: App) -> Any:
    """Swift's cache in the pipeline of :func:`load_app`; None without one."""
    pipeline = app._pipeline  # type: ignore[attr-defined]
    return next((one.memcache for one in pipeline if hasattr(one, "memcache")), None)
