"""A filter of Swift's pipeline that records the environ of each request that reaches it, as JSON, one a line.

It stands in place of ``egg:openstack-sluice#proxy``, so that it sees the same. ``before`` is the environ on arrival,
``after`` the changes in it when the proxy has authorized the request: an auth middleware acts twice.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

#: Keys without a message of another program, or without information about the user.
NOISE = (
    "wsgi.",
    "eventlet.",
    "SERVER_",
    "REMOTE_ADDR",
    "REMOTE_PORT",
    "RAW_PATH_INFO",
    "headers_raw",
    "GATEWAY_",
    "webob.adhoc_attrs",
    "swift.trans_id",
    "swift.infocache",
    "swift.cache",
    "swift.log_info",
    "swift.req_info",
    "swift.orig_req_method",
    "staticweb.start_time",
    "HTTP_HOST",
    "HTTP_X_TIMESTAMP",
    "HTTP_X_TRANS_ID",
    "HTTP_DATE",
    "HTTP_X_AMZ",
    "HTTP_CONNECTION",
    "HTTP_AMZ_SDK",
    "HTTP_USER_AGENT",
    "HTTP_EXPECT",
    "keystone.token_auth",
)
#: Private keys with secrets; only their presence is recorded.
SECRET = ("keystone.token_info", "s3api.auth_details")


def plain(value: Any) -> Any:
    """The JSON form of ``value``; a tuple differs from a list, and of an object only its type is kept."""
    if isinstance(value, tuple):
        return {"tuple": [plain(one) for one in value]}
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return {"object": f"{type(value).__module__}.{type(value).__qualname__}"}


def seen(environ: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in environ.items() if not name.startswith(NOISE)}
    return {name: plain(object() if name in SECRET else value) for name, value in kept.items()}


class Recorder:
    """:param path: the file to which lines are appended"""

    def __init__(self, app: Callable[..., Iterable[bytes]], path: str) -> None:
        self._app, self._path = app, path

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        before = seen(environ)
        answer = self._app(environ, start_response)
        after = seen(environ)
        changed = {name: value for name, value in after.items() if before.get(name, self) != value}
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"before": before, "after": changed}) + "\n")
        return answer


def filter_factory(global_conf: Mapping[str, str], **options: str) -> Callable[..., Recorder]:
    return lambda app: Recorder(app, options["path"])
