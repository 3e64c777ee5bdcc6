"""Which filters a policy puts on this request: path, facts, look-up, filter instances.

No network call and no lock: up to four reads from the node's snapshot (``sluice_core.snapshot``),
and the rules of ``sluice_core.resolve``.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from typing import Any, Final

from sluice_core.describe import FILTER, PROXY
from sluice_core.errors import PeerError
from sluice_core.predicate import Facts
from sluice_core.resolve import Candidates
from sluice_core.snapshot import SnapshotReader
from sluice_filters.api import Filter

Env = dict[str, Any]
Target = tuple[str, str, str]

#: A PUT that carries one of these is a manifest or a link: small, and Swift's to interpret.
_NOT_DATA: Final = (
    "HTTP_X_STATIC_LARGE_OBJECT",
    "HTTP_X_OBJECT_MANIFEST",
    "HTTP_X_OBJECT_SYSMETA_SYMLINK_TARGET",
    "HTTP_X_OBJECT_SYSMETA_SLO_ETAG",
)
_NO_TAGS: Final[frozenset[str]] = frozenset()


def object_path(env: Env) -> Target | None:
    """``(account, container, object)`` of an object request by a client, else None.

    Accounts that begin with a dot are Swift's own (expiring objects, misplaced objects).
    """
    path: str = env["PATH_INFO"]
    if not path.isascii():
        path = path.encode("latin-1").decode("utf-8", "surrogateescape")
    parts = path.split("/", 4)
    if len(parts) != 5 or not parts[4] or not parts[3] or parts[1] not in ("v1", "v1.0"):
        return None
    account = parts[2]
    if not account or account[0] == ".":
        return None
    return account, parts[3], parts[4]


def is_data(env: Env) -> bool:
    """False for manifests, links and empty bodies."""
    return env.get("CONTENT_LENGTH") != "0" and not any(name in env for name in _NOT_DATA)


def content_length(env: Env) -> int | None:
    """Content-Length of the request, None when it is chunked or not a number."""
    text = env.get("CONTENT_LENGTH")
    return int(text) if text and text.isdigit() and "HTTP_TRANSFER_ENCODING" not in env else None


def upload_facts(env: Env, name: str) -> Facts:
    """What is known of a PUT (type as Swift will guess it where the client named none)."""
    content_type = env.get("CONTENT_TYPE") or mimetypes.guess_type(name)[0]
    return Facts(
        method=env["REQUEST_METHOD"],
        name=name,
        size=content_length(env),
        content_type=content_type,
        tags=_tags(env.get("HTTP_X_OBJECT_META_TAGS", "")),
    )


def download_facts(method: str, name: str, headers: list[tuple[str, str]], size: int | None) -> Facts:
    """What is known of a stored object from the headers of its answer."""
    by_name = {key.lower(): value for key, value in headers}
    length = by_name.get("content-length", "")
    return Facts(
        method=method,
        name=name,
        size=size if size is not None else (int(length) if length.isdigit() else None),
        content_type=by_name.get("content-type"),
        tags=_tags(by_name.get("x-object-meta-tags", "")),
    )


def _tags(text: str) -> frozenset[str]:
    if not text:
        return _NO_TAGS
    return frozenset(tag for tag in (part.strip().lower() for part in text.split(",")) if tag)


class Selector:
    """The look-up of one worker, with the filters that are installed here."""

    def __init__(self, reader: SnapshotReader, filters: Mapping[str, type[Filter]]) -> None:
        self._reader = reader
        self._filters = filters
        self._instances: dict[tuple[str, tuple[tuple[str, Any], ...]], Filter] = {}

    def candidates(self, target: Target) -> Candidates:
        """Every assignment that may concern ``target``."""
        return self._reader.find(*target)

    def upload_filters(self, candidates: Candidates, facts: Facts) -> list[Filter]:
        """The filters of a PUT, in running order.

        :raises PeerError: when a policy wants one that is not installed here
        """
        return [one for one in self._chosen(candidates, facts) if one.info.on_put]

    def download_filters(self, candidates: Candidates, facts: Facts) -> list[Filter]:
        """The read-time filters of a GET, in running order (nearest the disks first)."""
        return [one for one in reversed(self._chosen(candidates, facts)) if one.info.on_get]

    def _chosen(self, candidates: Candidates, facts: Facts) -> list[Filter]:
        pipeline = candidates.resolve(facts).get(FILTER, ())
        return [self._instance(step.keyword, step.params) for step in pipeline if step.place == PROXY]

    def _instance(self, keyword: str, params: Mapping[str, Any]) -> Filter:
        key = (keyword, tuple(sorted(params.items())))
        found = self._instances.get(key)
        if found is None:
            if keyword not in self._filters:
                raise PeerError(f"filter `{keyword}` is not installed on this node")
            if len(self._instances) > 1000:  # parameters of policies long gone
                self._instances.clear()
            found = self._instances[key] = self._filters[keyword](params)
        return found
