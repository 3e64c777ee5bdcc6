"""``egg:openstack-sluice#reads``: filters that change the content that is read, on whole objects as clients see them.

It must stand left of ``slo`` and ``dlo``, so that a large object is one stream, and right of ``copy``, so that
a copy contains the bytes that the copying client may read.  Filters of storage nodes are offered to
them (``X-Backend-Sluice-Read``, see :mod:`sysmeta`) and run here where they did not run there: manifests, fragments
of erasure-coded objects, objects that the proxy transformed.  The bytes are the same in both cases.

A response that a filter changed:

* It is 200 and has neither ETag nor Content-Length nor ranges, HEAD included: they are unknown beforehand.  A
  ``Range`` is ignored, as HTTP allows; so is ``part-number``.  A filter with ranges of its own declares that.
* Conditional headers refer to the stored object, whose ETag and time listings show: 304 and 412 as usual.
* A request that is invalid for the filter is answered with 400 and the reason.
* ``copy`` refuses a server-side copy of such an object (413), since its length is unknown.
* An object under such a filter cannot be read by a link or in a large object that is not under it: 503.
* The manifest of a large object (``multipart-manifest=get``) is not data and passes; so do links themselves.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import parse_qsl, urlencode

from sluice_core.describe import STORAGE_NODE
from sluice_core.errors import PeerError, SluiceError
from sluice_core.messages.predicate import Facts
from sluice_core.options import read_options
from sluice_core.resolve import Candidates
from sluice_filters.api import BadParameter, Filter, Hint
from sluice_middleware.log import open_logger
from sluice_middleware.motifs.rights import client_known
from sluice_middleware.proxy.object_handler import COVERED_BY_READ_FILTERS, OFFERED_STEPS, PASSED_READ_FILTERS
from sluice_middleware.swift.proxy_api import Request, drain_and_close
from sluice_middleware.wsgi import backend_headers, decoding, read_pipeline, sysmeta
from sluice_middleware.wsgi.policy_lookup import (
    LOOKED_UP,
    SelectedFilter,
    Target,
    content_readers,
    download_facts,
    object_path,
)
from sluice_middleware.wsgi.response import (
    CONDITIONS,
    App,
    Env,
    ObjectChanged,
    RetryRequest,
    StartResponse,
    UpstreamResponse,
    object_size,
)
from sluice_middleware.wsgi.worker_context import OPTIONS, PASTE_OPTIONS, WorkerContext

#: Backend headers of Sluice that no request from the left may carry.
_OURS: Final = (sysmeta.READ_ENV, sysmeta.REFUSED_ENV)
_RANGES: Final = ("HTTP_RANGE", "HTTP_IF_RANGE")
#: Swift's servers take headers of some 8 KB.
_LONGEST_OFFER: Final = 6000
#: How often a GET is sent again when its object changes after the HEAD before it.
_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The bytes to read, and the filters that run; ``head`` is the response to an earlier HEAD, if there was one."""

    chosen: list[SelectedFilter]
    hint: Hint
    head: UpstreamResponse | None = None

    @property
    def filters(self) -> list[Filter]:
        """The filters in running order."""
        return [one.filter for one in self.chosen]


class ReadsMiddleware:
    """The WSGI filter; one per worker."""

    def __init__(self, app: App, context: WorkerContext) -> None:
        self.app = app
        self.context = context
        self.logger = context.logger

    def __call__(self, env: Env, start_response: StartResponse) -> Iterable[bytes]:
        for name in _OURS:
            env.pop(name, None)
        if env["REQUEST_METHOD"] not in ("GET", "HEAD"):
            with client_known(env):  # Swift may copy or store an object by requests of its own
                return self.app(env, start_response)
        target = object_path(env)
        if target is None:
            return self.app(env, start_response)
        if not self.context.started:
            self.context.start()
        env[PASSED_READ_FILTERS] = True
        lookup = self.context.lookup
        candidates = lookup.candidates(target)
        env[LOOKED_UP] = (env["PATH_INFO"], target, candidates)
        covering = lookup.reader_keywords & candidates.keywords
        if not covering:
            return self.app(env, start_response)
        env.setdefault("swift.infocache", {})[COVERED_BY_READ_FILTERS] = covering
        try:
            respond = self._head if env["REQUEST_METHOD"] == "HEAD" else self._get
            answer = respond(env, target, candidates)
        except SluiceError as error:
            if not isinstance(error, BadParameter):
                self.logger.error("sluice: %s %s refused: %s", env["REQUEST_METHOD"], env["PATH_INFO"], error)
            return decoding.refuse(env, error, start_response)
        start_response(answer.status, answer.headers, answer.exc_info)
        return answer.body

    # -- HEAD --------------------------------------------------------------------------------

    def _head(self, env: Env, target: Target, candidates: Candidates) -> UpstreamResponse:
        """Return the response to a HEAD: that of a GET without its body, where a filter changes the content."""
        answer = UpstreamResponse(self.app, env)
        if answer.code == 416 and self._plan(env, target, candidates, self._look(env)).chosen:
            _ask_for(env, None)
            drain_and_close(answer.body)
            answer = UpstreamResponse(self.app, env)
        if answer.code not in (200, 206) or _is_no_data(env, answer):
            return answer
        if self._plan(env, target, candidates, answer).chosen:
            drain_and_close(answer.body)
            answer.status, answer.headers = "200 OK", read_pipeline.valid_headers(answer.headers)
            answer.body = iter(())  # a server would send the length 0 for a list
        return answer

    # -- GET ---------------------------------------------------------------------------------

    def _get(self, env: Env, target: Target, candidates: Candidates) -> UpstreamResponse:
        problem: SluiceError = PeerError("object cannot be read")
        for _ in range(_TRIES):
            plan = self._plan(env, target, candidates) if candidates.constant is not None else None
            if plan is not None and not plan.chosen:
                return UpstreamResponse(self.app, env)
            if plan is None or any(type(one).span is not Filter.span for one in plan.filters):
                head = self._look(env)
                if head is None:
                    return UpstreamResponse(self.app, env)  # its response has the reason
                plan = self._plan(env, target, candidates, head)
                if not plan.chosen:
                    return UpstreamResponse(self.app, env)
            try:
                return self._read(env, plan)
            except RetryRequest as error:
                problem = error
        raise problem

    def _plan(self, env: Env, target: Target, candidates: Candidates, head: UpstreamResponse | None = None) -> ReadPlan:
        """Return the filters that hold for the object, as far as ``head`` describes it, and that act on the request."""
        size = None if head is None else object_size(head)
        facts = Facts("GET", target[2]) if head is None else download_facts("GET", target[2], head.headers, size)
        chosen = content_readers(self.context.lookup.pipeline(candidates, facts))
        hint = Hint(
            size=size,
            content_type=facts.content_type,
            name=target[2],
            account=target[0],
            asked=read_pipeline.requested_headers([one.filter for one in chosen], env),
        )
        return ReadPlan([one for one in chosen if one.filter.reads(hint)], hint, head)

    def _look(self, env: Env) -> UpstreamResponse | None:
        """Return the response to a HEAD of the whole object; None if it was not successful."""
        asked = {name: value for name, value in env.items() if name not in _RANGES + CONDITIONS}
        asked["REQUEST_METHOD"] = "HEAD"
        asked["wsgi.input"] = io.BytesIO()
        asked.setdefault("swift.source", backend_headers.SOURCE)
        answer = UpstreamResponse(self.app, asked)
        drain_and_close(answer.body)
        return answer if answer.code == 200 else None

    def _read(self, env: Env, plan: ReadPlan) -> UpstreamResponse:
        """Read the object, or the part of it that the filters need, through the filters.

        :raises ObjectChanged: when its version differs from that of the HEAD before
        """
        span = read_pipeline.wanted_span(plan.filters, plan.hint)
        if span is not None and plan.head is not None and span[0] >= span[1]:
            answer = UpstreamResponse.build("200 OK", read_pipeline.valid_headers(plan.head.headers), [])
            read_pipeline.apply_filters(answer, plan.filters, plan.hint)
            return answer
        _ask_for(env, span)
        offered = _offer(env, plan)
        answer = UpstreamResponse(self.app, env)
        ran = _take(answer, sysmeta.READ) == "done"
        if answer.code not in (200, 206) or _is_no_data(env, answer):
            return answer
        if plan.head is not None and _etag(plan.head) != _etag(answer) and not ran:
            drain_and_close(answer.body)
            raise ObjectChanged("object changed while it was read")
        left = plan.filters[len(offered) :] if ran else plan.filters
        hint = plan.hint if plan.head is not None else _learned(plan.hint, answer)
        read_pipeline.apply_filters(answer, left, replace(hint, size=None) if ran else hint)
        return answer


def _etag(answer: UpstreamResponse) -> str:
    return (sysmeta.find_header(answer.headers, "Etag") or "").strip('"')


def _take(answer: UpstreamResponse, name: str) -> str | None:
    """Remove a header from the response and return its value."""
    value = sysmeta.find_header(answer.headers, name)
    if value is not None:
        answer.headers = [pair for pair in answer.headers if pair[0].lower() != name.lower()]
    return value


def _is_no_data(env: Env, answer: UpstreamResponse) -> bool:
    """Whether the response is a manifest requested as such, or a link."""
    if "multipart-manifest" in env.get("QUERY_STRING", "") and Request(env).params.get("multipart-manifest") == "get":
        return sysmeta.find_header(answer.headers, "X-Static-Large-Object") is not None
    return sysmeta.find_header(answer.headers, "X-Symlink-Target") is not None


def _ask_for(env: Env, span: tuple[int, int] | None) -> None:
    """Request the bytes in ``span``, or all bytes."""
    for name in _RANGES:
        env.pop(name, None)
    if "part-number" in env.get("QUERY_STRING", ""):
        query = parse_qsl(env["QUERY_STRING"], keep_blank_values=True)
        env["QUERY_STRING"] = urlencode([pair for pair in query if pair[0] != "part-number"])
    if span is not None:
        env["HTTP_RANGE"] = f"bytes={span[0]}-{span[1] - 1}"


def _offer(env: Env, plan: ReadPlan) -> list[SelectedFilter]:
    """Name the filters that storage nodes may run: the first ones, up to one that runs here."""
    offered: list[SelectedFilter] = []
    for selected in plan.chosen:
        if selected.place != STORAGE_NODE:
            break
        offered.append(selected)
    if offered:
        wish = {
            "steps": backend_headers.encode_steps(offered),
            "a": dict(plan.hint.asked),
            "range": env.get("HTTP_RANGE"),
        }
        text = json.dumps(wish)
        if len(text) <= _LONGEST_OFFER:
            env[OFFERED_STEPS] = text
    return offered


def _learned(hint: Hint, answer: UpstreamResponse) -> Hint:
    """Add the attributes of the response to ``hint``."""
    return replace(hint, size=object_size(answer), content_type=sysmeta.find_header(answer.headers, "Content-Type"))


def filter_factory(global_conf: dict[str, str], **local_conf: str) -> Callable[[App], ReadsMiddleware]:
    """Paste's entry point; the options are those of ``egg:openstack-sluice#proxy``.

    :raises OptionError: for unknown options and bad values, all at once
    """
    options = read_options(OPTIONS, local_conf, "[filter:sluice-reads]", PASTE_OPTIONS)
    context = WorkerContext(options, open_logger({**global_conf, **local_conf}, "sluice-reads"))
    return lambda app: ReadsMiddleware(app, context)
