"""Look-up of the filters that policies put on a request: path, facts, look-up, filter instances.

Theory of operation.  The path gives the target, the target gives the candidates (up to four reads of the node's
snapshot, ``sluice_core.snapshot.reader``), and the facts of the request choose among the candidates
(``sluice_core.resolve``).  There is no network call and no lock.  Filter instances are kept by keyword and parameters.

Swift keeps parts of an object that is one for clients in containers of its own: the parts of an S3 multipart upload to
``X`` in ``X+segments``, the versions of a versioned container ``X`` in ``\\0versions\\0X``.  They are data of X, so the
policies and metrics of X apply to them (:func:`logical_object`).  A policy that names such a container itself replaces
those of X.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sluice_core.describe import FILTER, OBJECT_METHODS, PROXY, STORAGE_NODE
from sluice_core.errors import PeerError
from sluice_core.messages.policies import Assignment
from sluice_core.messages.predicate import Facts
from sluice_core.resolve import Candidates, running_order
from sluice_core.snapshot.reader import SnapshotReader
from sluice_filters.api import BadParameter, Filter
from sluice_middleware.wsgi.response import Env

Target = tuple[str, str, str]

#: In the environment of a request that ``sluice-reads`` looked up: its path, target and candidates.
LOOKED_UP: Final = "sluice.looked_up"

#: A PUT with one of these is a manifest or a link: small, and interpreted by Swift.
_NOT_DATA: Final = (
    "HTTP_X_STATIC_LARGE_OBJECT",
    "HTTP_X_OBJECT_MANIFEST",
    "HTTP_X_OBJECT_SYSMETA_SYMLINK_TARGET",
    "HTTP_X_OBJECT_SYSMETA_SLO_ETAG",
)
_NO_TAGS: Final[frozenset[str]] = frozenset()
_SEGMENTS: Final = "+segments"
_VERSIONS: Final = "\0versions\0"
#: ``key/upload id/part number`` of an S3 multipart upload, and ``key/upload id`` of the upload itself.
_PART: Final = re.compile(r"(.+)/[^/]+/\d{1,5}", re.DOTALL)


def decoded_path(env: Env) -> str:
    """The path of a request as text; bytes that are not UTF-8 become surrogates."""
    path: str = env["PATH_INFO"]
    return path if path.isascii() else path.encode("latin-1").decode("utf-8", "surrogateescape")


def object_path(env: Env) -> Target | None:
    """``(account, container, object)`` of an object request by a client, else None.

    Accounts that begin with a dot are Swift's own (expiring objects, misplaced objects).
    """
    path = env["PATH_INFO"]
    parts = (path if path.isascii() else decoded_path(env)).split("/", 4)
    if len(parts) != 5 or not parts[4] or not parts[3] or parts[1] not in ("v1", "v1.0"):
        return None
    account = parts[2]
    if not account or account[0] == ".":
        return None
    return account, parts[3], parts[4]


def logical_object(target: Target) -> Target:
    """The client's object that ``target`` is, or is a part of; ``target`` itself in most cases."""
    account, container, name = target
    if container.endswith(_SEGMENTS) and len(container) > len(_SEGMENTS):
        part = _PART.fullmatch(name)
        return account, container[: -len(_SEGMENTS)], part[1] if part else name
    if container.startswith(_VERSIONS):
        if name.startswith("\0"):
            name = name[1:].rpartition("\0")[0]
        return account, container[len(_VERSIONS) :], name
    return target


def is_version(target: Target) -> bool:
    """Whether ``target`` is a version of a client's object."""
    return target[1].startswith(_VERSIONS)


def fix_version_length(env: Env, target: Target) -> None:
    """Remove the wrong Content-Length 0 that Swift sends for a version, whose bytes follow nevertheless."""
    if env.get("CONTENT_LENGTH") == "0" and is_version(target):
        del env["CONTENT_LENGTH"]
        env["HTTP_TRANSFER_ENCODING"] = "chunked"


def is_data(env: Env) -> bool:
    """Whether the body is data: False for manifests, links and empty bodies."""
    return env.get("CONTENT_LENGTH") != "0" and not is_interpreted(env)


def is_interpreted(env: Env) -> bool:
    """Whether a PUT stores a manifest or a link."""
    return any(name in env for name in _NOT_DATA)


def content_length(env: Env) -> int | None:
    """Content-Length of the request, None when it is chunked or not a number."""
    text = env.get("CONTENT_LENGTH")
    return int(text) if text and text.isdigit() and "HTTP_TRANSFER_ENCODING" not in env else None


def upload_facts(env: Env, name: str) -> Facts:
    """The facts of a PUT (with the type that Swift will guess if the client names none)."""
    content_type = env.get("CONTENT_TYPE") or mimetypes.guess_type(name)[0]
    return Facts(
        method=env["REQUEST_METHOD"],
        name=name,
        size=content_length(env),
        content_type=content_type,
        tags=_tags(env.get("HTTP_X_OBJECT_META_TAGS", "")),
    )


def request_facts(env: Env, name: str) -> Facts:
    """The facts known before the response to a request for a stored object: neither size nor type nor tags."""
    return Facts(method=env["REQUEST_METHOD"], name=name)


def download_facts(method: str, name: str, headers: list[tuple[str, str]], size: int | None) -> Facts:
    """The facts of a stored object, from the headers of its response."""
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


class SelectedFilter(NamedTuple):
    """A filter of a pipeline, and the assignment that put it there."""

    filter: Filter
    step: Assignment

    @property
    def place(self) -> str:
        """Where the filter runs: on the proxy or on storage nodes."""
        return self.step.place


class PolicyLookup:
    """The look-up of one worker, with the filters that are installed here."""

    def __init__(self, reader: SnapshotReader, filters: Mapping[str, type[Filter]]) -> None:
        self._reader = reader
        self._filters = filters
        self.rebuild()

    def rebuild(self) -> None:
        """Rebuild the look-up tables after a change of the installed filters."""
        self._instances: dict[tuple[str, tuple[tuple[str, Any], ...]], Filter] = {}
        known = self._filters.items()
        #: Method → keywords of the filters that accompany its requests.
        self.request_keywords = {
            method: frozenset(
                keyword
                for keyword, one in known
                if one.info.on_request and (not one.info.methods or method in one.info.methods)
            )
            for method in OBJECT_METHODS
        }
        #: Keywords of read-time filters that do not change the content.
        self.observer_keywords = frozenset(
            keyword for keyword, one in known if one.info.on_get and not one.info.changes_content
        )
        #: Keywords of the filters that change the content that is read.
        self.reader_keywords = frozenset(
            keyword for keyword, one in known if one.info.on_get and one.info.changes_content
        )

    def candidates(self, target: Target) -> Candidates:
        """Every assignment that may concern ``target``."""
        candidates = self._reader.find(*target)
        if not target[1].endswith(_SEGMENTS) and not target[1].startswith(_VERSIONS):
            return candidates
        # equal look-ups return the same object, so that a different object means a policy of its own
        by_itself = candidates is not self._reader.find(target[0], "", "")
        return candidates if by_itself else self._reader.find(*logical_object(target))

    def pipeline(self, candidates: Candidates, facts: Facts) -> list[SelectedFilter]:
        """Return all filters that hold, in running order on PUT.

        :raises PeerError: when a policy requires a filter that is not installed here
        """
        pipeline = candidates.resolve(facts).get(FILTER, ())
        return [SelectedFilter(self._instance(step.keyword, step.params), step) for step in pipeline]

    def request_filters(self, candidates: Candidates, facts: Facts, place: str) -> list[SelectedFilter]:
        """Return the request filters at ``place``, next to the client first."""
        chosen = self.pipeline(candidates, facts)
        return [one for one in chosen if one.filter.info.on_request and one.place == place]

    def undecided_filters(self, candidates: Candidates, facts: Facts, place: str) -> list[SelectedFilter]:
        """Return the request filters at ``place`` that may hold once more than ``facts`` is known, in running order.

        :raises PeerError: when a policy gives parameters that the filter does not accept here
        """
        steps = [
            one
            for one in candidates.undecided(FILTER, facts)
            if one.verb != "delete" and one.place == place and one.keyword in self.request_keywords[facts.method]
        ]
        return [
            SelectedFilter(self._instance(one.keyword, one.params), one) for one in sorted(steps, key=running_order)
        ]

    def is_protective(self, keyword: str) -> bool:
        """Whether the filter's effect must stay hidden; True for a filter that is not installed here."""
        known = self._filters.get(keyword)
        return known is None or known.info.protective

    def _instance(self, keyword: str, params: Mapping[str, Any]) -> Filter:
        key = (keyword, tuple(sorted(params.items())))
        instance = self._instances.get(key)
        if instance is None:
            if keyword not in self._filters:
                raise PeerError(f"filter `{keyword}` is not installed on this node")
            if len(self._instances) > 1000:  # most are parameters of former policies
                self._instances.clear()
            try:
                instance = self._instances[key] = self._filters[keyword](params)
            except BadParameter as error:  # the policy's fault, not the client's
                raise PeerError(
                    f"a policy gives filter `{keyword}` parameters that it does not take here: {error}"
                ) from error
        return instance


def proxy_encoders(pipeline: list[SelectedFilter]) -> list[Filter]:
    """The filters that the proxy runs on stored bytes, in running order."""
    return [one.filter for one in pipeline if one.place == PROXY and _encodes(one.filter)]


def storage_node_encoders(pipeline: list[SelectedFilter]) -> list[SelectedFilter]:
    """The filters that storage nodes run on stored bytes, in running order."""
    return [
        one for one in pipeline if one.place == STORAGE_NODE and _encodes(one.filter) and one.filter.info.reversible
    ]


def observers(pipeline: list[SelectedFilter]) -> list[Filter]:
    """The filters that the proxy runs on a GET and that do not change its body, in the order of PUT."""
    return [one.filter for one in pipeline if one.place == PROXY and one.filter.info.on_get and not _reads(one.filter)]


def content_readers(pipeline: list[SelectedFilter]) -> list[SelectedFilter]:
    """The filters that change the body of a GET, in running order on GET (nearest the disks first)."""
    return [one for one in reversed(pipeline) if _reads(one.filter)]


def _encodes(one: Filter) -> bool:
    return one.info.on_put and not one.info.on_request


def _reads(one: Filter) -> bool:
    return one.info.on_get and one.info.changes_content
