"""Object requests on objects as clients see them: the part of the proxy that policies act on.

Theory of operation.  :meth:`ObjectHandler.handle` handles one object request.

* Request filters accompany it (:mod:`request_filters`), the first one next to the client.
* A PUT is encoded by the filters of the policies that hold now (:mod:`encoding`).  A header names the filters that run
  on storage nodes (:mod:`backend_headers`).
* A GET or HEAD is decoded as the object's own metadata say (:mod:`decoding`), independent of the present policies.
* Read-time filters that do not change the content observe the body.  Those that change it stand further left
  (:mod:`read_filters`), since they need whole objects, and large objects reach this module in parts.

An object that changes between two requests for parts of it is requested again, a bounded number of times.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from time import monotonic
from typing import Final

from sluice_core.describe import FILTER, PROXY
from sluice_core.errors import PeerError, SluiceError
from sluice_core.messages.predicate import Facts
from sluice_core.resolve import Candidates
from sluice_filters.api import Filter, Hint
from sluice_filters.chain import ChainEncoder, chain_reader
from sluice_filters.visits import Reply
from sluice_middleware.log import Logger
from sluice_middleware.motifs.daemon_client import PATIENCE, DaemonClient, ItemReports
from sluice_middleware.motifs.reads import MotifReads, NotAnswered
from sluice_middleware.motifs.writes import MotifWrites
from sluice_middleware.proxy import subrequests
from sluice_middleware.proxy.filter_selection import CachedAttributes, answer_facts, complete_facts, select_filters
from sluice_middleware.proxy.range_index import RangeIndex
from sluice_middleware.proxy.upload_filters import UploadFilters, measure_compressibility
from sluice_middleware.swift.proxy_api import close_if_possible, constraints
from sluice_middleware.wsgi import backend_headers, decoding, encoding, sysmeta
from sluice_middleware.wsgi.decoding import TransformedObject
from sluice_middleware.wsgi.inputs import ObservedInput
from sluice_middleware.wsgi.policy_lookup import (
    PolicyLookup,
    SelectedFilter,
    Target,
    content_length,
    content_readers,
    fix_version_length,
    is_data,
    logical_object,
    observers,
    proxy_encoders,
    request_facts,
    storage_node_encoders,
    upload_facts,
)
from sluice_middleware.wsgi.request_filters import FilterHost, RequestFilters
from sluice_middleware.wsgi.response import App, DecodedBody, Env, RetryRequest, UpstreamResponse
from sluice_motifs.templates.registry import load_templates
from sluice_rewrites.accounts import owner_account

#: Set in the environment of requests that passed :mod:`read_filters`.
PASSED_READ_FILTERS: Final = "sluice.reads"
#: In the cache that Swift's middlewares pass to their own requests: keywords of the filters that
#: :mod:`read_filters` may have run, if the object that the client requested meets their conditions.
COVERED_BY_READ_FILTERS: Final = "sluice.reads.covered"
#: ``swift.source`` of requests whose bytes a client gets: the client's own, and those that follow links and manifests.
_FOR_CLIENTS: Final = (None, "SYM", "SLO", "DLO")
#: In the environment of a GET: the filters that storage nodes may run, for the first request for its object.
OFFERED_STEPS: Final = "sluice.push"
#: How often a GET is sent when its object changes between two requests for parts of it, or while it is made: a client
#: then writes it, or its sources, several times a second.  A retry begins at most as long after the first request as
#: the motif daemon may take for one frame; the last one may still wait for several frames.
_TRIES: Final = 8
_READS: Final = ("GET", "HEAD")


class ObjectHandler:
    """Handles the object requests of one worker."""

    def __init__(
        self,
        app: App,
        lookup: PolicyLookup,
        filters: dict[str, type[Filter]],
        logger: Logger,
        cache: CachedAttributes | None = None,
        motifs: DaemonClient | None = None,
    ) -> None:
        """
        :param motifs: the node's motif daemon; None where objects with motifs are handled like other objects
        """
        self.app = app
        self.lookup = lookup
        self.filters = filters
        self.logger = logger
        self.cache = cache
        self.range_index = RangeIndex(filters)
        self._motif_reads: MotifReads | None = None
        self._motif_writes: MotifWrites | None = None
        if motifs is not None:
            templates = load_templates()
            reports = ItemReports(motifs)
            self._motif_reads = MotifReads(app, motifs, templates, reports)
            self._motif_writes = MotifWrites(app, motifs, templates, subrequests.would_be_accepted, reports)

    def handle(
        self, env: Env, target: Target, passed: Collection[str] = (), candidates: Candidates | None = None
    ) -> UpstreamResponse:
        """The response to ``env``, a request for the plain object ``target``.

        :param passed: request filters that have seen the request already
        :param candidates: the policies that may concern ``target``, if the caller has them
        :raises SluiceError: when the request cannot be answered; the client gets 503 with the reason
        """
        if candidates is None:
            candidates = self.lookup.candidates(target)
        method = env["REQUEST_METHOD"]
        if method == "PUT":
            fix_version_length(env, target)
        visiting = self.lookup.request_keywords.get(method)
        if visiting is None or visiting.isdisjoint(candidates.keywords):
            answer = self._read(env, target) if method in _READS else self._plain(env, target, candidates)
        else:
            answer = self._accompanied(env, target, candidates, passed)
        if FILTER in candidates.kinds and method == "GET" and answer.status.startswith(("200", "206")):
            self._watch(env, target, candidates, answer)
        return answer

    def _plain(self, env: Env, target: Target, candidates: Candidates) -> UpstreamResponse:
        """As :meth:`handle`, without request filters."""
        method = env["REQUEST_METHOD"]
        if method in _READS:
            return self._read(env, target)
        copied = env.pop(sysmeta.COPIED_ENV, None)
        sysmeta.strip_request(env)
        if self._motif_writes is None or self._motif_writes.is_idle(env, target, copied):
            return self._changed(env, target, candidates)
        with self._motif_writes.guarded(env, target):
            if method == "PUT":
                answer = self._motif_writes.copy(env, target, copied)
                if answer is not None:
                    return answer
                self._motif_writes.attach(env, target, candidates)
            elif method == "POST":
                self._motif_writes.post(env, target)
            return self._changed(env, target, candidates)

    def _changed(self, env: Env, target: Target, candidates: Candidates) -> UpstreamResponse:
        """Return the response to a PUT, POST or DELETE."""
        if env["REQUEST_METHOD"] == "PUT":
            return self._write(env, target, candidates)
        answer = UpstreamResponse(self.app, env)
        backend_headers.raise_if_refused(answer)
        return answer

    def _accompanied(
        self, env: Env, target: Target, candidates: Candidates, passed: Collection[str]
    ) -> UpstreamResponse:
        """As :meth:`handle`, with the request filters that hold."""
        facts = self._request_facts(env, target, candidates)
        selection = select_filters(self.lookup, candidates, facts, passed)
        if not selection.filters:
            return self._plain(env, target, candidates)
        env.pop(OFFERED_STEPS, None)  # visits see the object, not a filter's output
        host = FilterHost(
            place=PROXY,
            logger=self.logger,
            authorize=lambda: subrequests.authorize(self.app, env),
            sender=lambda behind: partial(
                subrequests.send_subrequest, self.app, partial(self.handle, passed={*passed, *behind}), env, target
            ),
            is_protective=self.lookup.is_protective,
        )
        stored_by: tuple[str, ...] = ()
        if facts.method == "PUT":
            pipeline = self.lookup.pipeline(candidates, facts)
            stored_by = tuple(one.info.keyword for one in proxy_encoders(pipeline))
            stored_by += tuple(one.filter.info.keyword for one in storage_node_encoders(pipeline))
        request_filters = RequestFilters(host, env, target, stored_by)
        return request_filters.respond(
            selection.filters, lambda: self._plain(env, target, candidates), selection.waiting, selection.choose
        )

    def _request_facts(self, env: Env, target: Target, candidates: Candidates) -> Facts:
        """The facts known before the request is made; of a stored object only those that a condition needs."""
        if env["REQUEST_METHOD"] == "PUT":
            return self._upload_facts(env, target, candidates)
        name = logical_object(target)[2]

        def head() -> Reply:
            return subrequests.send_subrequest(
                self.app, lambda asked, _: self._read(asked, target), env, target, "HEAD"
            )

        return complete_facts(candidates, request_facts(env, name), env, self.cache, head)

    def _upload_facts(self, env: Env, target: Target, candidates: Candidates) -> Facts:
        """The facts of an upload; its first bytes are read when a condition needs their compressibility."""
        facts = upload_facts(env, logical_object(target)[2])
        if (
            "compressibility" in candidates.asked
            and is_data(env)
            and candidates.undecided(FILTER, facts)
            and subrequests.would_be_accepted(self.app, env)
        ):
            facts.compressibility = measure_compressibility(env)
        return facts

    # -- PUT ---------------------------------------------------------------------------------

    def _write(self, env: Env, target: Target, candidates: Candidates) -> UpstreamResponse:
        if FILTER not in candidates.kinds:  # by far the most frequent
            answer = UpstreamResponse(self.app, env)
            backend_headers.raise_if_refused(answer)
            return answer
        body = self._encode(env, target, candidates)
        try:
            answer = UpstreamResponse(self.app, env)
        finally:
            if body is not None:
                body.close()
        backend_headers.raise_if_refused(answer)
        if body is not None and answer.status.startswith("2"):  # else a filter may have failed, without records
            answer.headers = encoding.plain_response_headers(answer.headers, body)
        return answer

    def _encode(self, env: Env, target: Target, candidates: Candidates) -> encoding.EncodedInput | None:
        """Encode the body by the policies' filters; return None when no filter may change it.

        :raises SluiceError: when a policy requires a filter that this node cannot run
        """
        wanted = self.upload_filters(env, target, candidates)
        if wanted is None:
            return None
        backend_headers.write_steps(env, wanted.on_nodes)
        if not wanted.on_proxy:
            return None
        filters, size = wanted.on_proxy, wanted.hint.size
        encoder = ChainEncoder(filters, wanted.hint)
        if not any(one.info.changes_content for one in filters):
            env["wsgi.input"] = ObservedInput(env, encoder)
            return None
        return encoding.prepare_upload(env, encoder, size, encoder.heavy, self._may_sample(env, filters, size))

    def upload_filters(self, env: Env, target: Target, candidates: Candidates) -> UploadFilters | None:
        """Return the filters of the upload in ``env``; None when no filter may act on it.

        :raises SluiceError: when a policy requires a filter that this node cannot run
        """
        if FILTER not in candidates.kinds or not is_data(env):
            return None
        size = content_length(env)
        if size is not None and size > constraints.MAX_FILE_SIZE:
            return None  # Swift refuses the request
        facts = self._upload_facts(env, target, candidates)
        pipeline = self.lookup.pipeline(candidates, facts)
        return UploadFilters.select(pipeline, env, target, facts.name, size, facts.content_type)

    def _may_sample(self, env: Env, filters: Sequence[Filter], size: int | None) -> bool:
        """Whether a batch may be read before Swift sees the request, and its result matters."""
        return (
            size is not None
            and size > encoding.BATCH
            and all(0 < one.decides_within <= encoding.BATCH or not one.info.changes_content for one in filters)
            and "HTTP_IF_NONE_MATCH" not in env  # Swift may refuse it without reading the body
            and subrequests.would_be_accepted(self.app, env)
        )

    # -- GET and HEAD ------------------------------------------------------------------------

    def _read(self, env: Env, target: Target) -> UpstreamResponse:
        decoding.prepare_download(env)
        problem: SluiceError = PeerError("object cannot be read")
        last = monotonic() + PATIENCE
        for number in range(_TRIES):
            if number and monotonic() > last:
                break
            answer = self.range_index.fetch(self.app, env) if "HTTP_RANGE" in env else None
            answer = answer or (self._first(env) if OFFERED_STEPS in env else UpstreamResponse(self.app, env))
            chain, node, motifs = sysmeta.find_marks(answer.headers)
            if motifs and self._motif_reads is not None:
                try:
                    answer = self._motif_reads.answer(env, target, answer)
                except NotAnswered as error:
                    env["HTTP_X_NEWEST"] = "true"
                    problem = error
                    continue
                chain, node, _ = sysmeta.find_marks(answer.headers)
            if chain is None and node is None:
                backend_headers.raise_if_refused(answer)
                return answer
            answer.filters = sysmeta.filter_keywords(chain, node)
            if chain is None:
                backend_headers.raise_if_refused(answer)
                answer.headers = sysmeta.strip_headers(answer.headers)
                return answer
            try:
                self.decode(env, target, answer, chain)
                return answer
            except RetryRequest as error:
                problem = error
            except BaseException:
                close_if_possible(answer.body)
                raise
        raise problem

    def _first(self, env: Env) -> UpstreamResponse:
        """Return Swift's response to a client's own request, in which storage nodes may run filters."""
        offer = env.pop(OFFERED_STEPS, None)
        if offer is None or not subrequests.is_replicated(self.app, env):
            return UpstreamResponse(self.app, env)
        env[sysmeta.READ_ENV] = offer
        try:
            return UpstreamResponse(self.app, env)
        finally:
            del env[sysmeta.READ_ENV]

    def decode(self, env: Env, target: Target, answer: UpstreamResponse, chain: str) -> None:
        """Turn the response into that of the plain object."""
        item = TransformedObject(self.app, env, answer, chain, self.filters, owner_account(target[0]))
        answer.status, answer.headers, answer.body = decoding.respond(item, answer, env)
        if "HTTP_RANGE" in env and answer.status.startswith("206"):
            self.range_index.remember(env, chain, item.records)

    def _watch(self, env: Env, target: Target, candidates: Candidates, answer: UpstreamResponse) -> None:
        """Pass the body through the read-time filters that do not change it."""
        alone = PASSED_READ_FILTERS not in env and env.get("swift.source") in _FOR_CLIENTS
        wanted = self.lookup.observer_keywords | self.lookup.reader_keywords if alone else self.lookup.observer_keywords
        if wanted.isdisjoint(candidates.keywords):
            return
        name = logical_object(target)[2]
        facts = answer_facts("GET", name, answer) or Facts("GET", name)
        hint = Hint(size=facts.size, content_type=facts.content_type, name=facts.name, account=target[0])
        try:
            pipeline = self.lookup.pipeline(candidates, facts)
            if alone:
                _refuse_detours(env, pipeline, hint)
            steps = observers(pipeline)
            if not steps:
                return
            heavy = any(one.heavy for one in steps)
            answer.body = DecodedBody(answer.body, chain_reader(steps, hint), heavy)
        except SluiceError:
            close_if_possible(answer.body)
            raise


def _refuse_detours(env: Env, pipeline: list[SelectedFilter], hint: Hint) -> None:
    """Refuse a link or a manifest of an object whose content a read-time filter changes, which it would bypass.

    :raises PeerError: unless a policy sets one of these filters on the requested object
    """
    source = env.get("swift.source")
    covered = env.get("swift.infocache", {}).get(COVERED_BY_READ_FILTERS, ())
    for selected in content_readers(pipeline):
        keyword = selected.filter.info.keyword
        if source is None:
            raise PeerError("a policy changes the content that is read, and `sluice-reads` is not in the pipeline")
        if keyword not in covered and selected.filter.reads(hint):
            raise PeerError(
                f"filter `{keyword}` changes the content of this object, which can only be read by its own name"
            )
