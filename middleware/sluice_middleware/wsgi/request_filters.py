"""The host of request filters (``sluice_filters.visits``), on the proxy and on storage nodes.

Theory of operation.  A :class:`RequestFilters` holds those of one request.  On the way in each filter returns
its visit, and the visit's ``request()`` is called before the next filter is; bodies are
wrapped in the same order, so that the first filter stands next to the client.  On the way out the
visits get the response backwards, and each may wrap its body.  In any case ``end`` is
called exactly once for every visit: at once when the request fails before its response starts,
else when the server closes the body.

An error of a visit refuses the request: a ``FilterError`` with its reason, any other one with the filter's name, and
a trace in the log; no partial output of a failed filter is sent as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from sluice_core.errors import SluiceError
from sluice_filters.api import Filter, FilterError, Stream
from sluice_filters.pipe import Pipe
from sluice_filters.visits import Call, Headers, Reply, Sender, Visit
from sluice_middleware.log import Logger
from sluice_middleware.swift.proxy_api import close_if_possible
from sluice_middleware.wsgi import encoding
from sluice_middleware.wsgi.inputs import ObservedInput, TrackedInput
from sluice_middleware.wsgi.policy_lookup import Target, content_length
from sluice_middleware.wsgi.response import DecodedBody, Env, UpstreamResponse
from sluice_middleware.wsgi.visit_adapters import (
    ContainedStream,
    FinalBody,
    FinalList,
    RewritingEncoder,
    request_headers,
    write_headers,
)

T = TypeVar("T")
Choose = Callable[[UpstreamResponse], Collection[Filter] | None]


@dataclass(frozen=True, slots=True)
class FilterHost:
    """The differences between the places; ``sender`` makes a sender for requests below the named filters."""

    place: str
    logger: Logger
    authorize: Callable[[], Reply | None]
    sender: Callable[[Sequence[str]], Sender]
    is_protective: Callable[[str], bool]


class RequestFilters:
    """The visits of one request."""

    def __init__(
        self, host: FilterHost, env: Env, target: Target, filters: Sequence[str] = (), bodies: bool = True
    ) -> None:
        """
        :param filters: keywords of the filters that will change the body of a PUT
        :param bodies: False when the body of a PUT is not that of the object alone
        """
        self._host = host
        self._env = env
        self._target = target
        self._bodies = bodies
        self._protected = any(map(host.is_protective, filters))
        self._headers: Headers | None = None
        self._given: dict[str, str] = {}
        self._visits: list[tuple[Filter, Call, Visit]] = []
        self._input: TrackedInput | None = None
        self._over = False

    def respond(
        self,
        filters: Sequence[Filter],
        forward: Callable[[], UpstreamResponse],
        waiting: Collection[Filter] = (),
        choose: Choose | None = None,
    ) -> UpstreamResponse:
        """Return the response on its way through the visits.

        :param forward: sends the request in its present form
        :param waiting: those of ``filters`` that hold only if ``choose`` returns them
        :param choose: returns the filters that hold for the object of a response, None when it does not describe it
        :raises SluiceError: when a visit failed, or ``forward`` did
        """
        try:
            reply, going_back = self._way_in(filters, waiting)
            if reply is None:
                answer = self._forward(forward)
                if not self._visits:
                    return answer
            else:
                answer = UpstreamResponse.build(reply.status, list(reply.headers.items()), reply.body)
            return self._way_out(answer, going_back, choose)
        except BaseException:
            self.end(False)
            raise

    def end(self, complete: bool) -> None:
        """End the visits with the request; further calls have no effect."""
        if self._over:
            return
        self._over = True
        complete = complete and (self._input is None or self._input.complete)
        for visitor, _, visit in reversed(self._visits):
            self._end_visit(visitor, visit, complete)

    def _end_visit(self, visitor: Filter, visit: Visit, complete: bool) -> None:
        try:
            visit.end(complete)
        except FilterError as error:
            self._host.logger.error("sluice: filter `%s` at the end: %s", visitor.info.keyword, error)
        except Exception:
            self._host.logger.exception("sluice: filter `%s` failed at the end", visitor.info.keyword)

    # -- in ----------------------------------------------------------------------------------

    def _way_in(
        self, filters: Sequence[Filter], waiting: Collection[Filter]
    ) -> tuple[Reply | None, list[tuple[Filter, Call, Visit]]]:
        """Return the reply of the first visit that answers, and the visits through which the response goes back."""
        for position, visitor in enumerate(filters):
            decided = visitor not in waiting
            call = self._call([other.info.keyword for other in filters[: position + 1]], decided)
            visit = self._contained(visitor, partial(visitor.visit, call))
            if visit is None:
                continue
            passed = list(self._visits)
            self._visits.append((visitor, call, visit))
            if not decided:
                self._contained(visitor, visit.wait)
                continue
            reply = self._contained(visitor, visit.request)
            if reply is not None:
                return reply, passed
        return None, list(self._visits)

    def _call(self, behind: Sequence[str], decided: bool) -> Call:
        env, (account, container, name) = self._env, self._target
        return Call(
            place=self._host.place,
            method=env["REQUEST_METHOD"],
            account=account,
            container=container,
            object=name,
            read_headers=self._read_headers,
            query=env.get("QUERY_STRING", ""),
            size=content_length(env) if env["REQUEST_METHOD"] == "PUT" else None,
            content_type=env.get("CONTENT_TYPE"),
            authorize=self._host.authorize,
            send=self._host.sender(behind),
            environ=env,
            protected=self._protected,
            decided=decided,
        )

    def _read_headers(self) -> Headers:
        """The request's headers, for all visits."""
        if self._headers is None:
            self._headers = request_headers(self._env)
            self._given = dict(self._headers)
        return self._headers

    def _forward(self, forward: Callable[[], UpstreamResponse]) -> UpstreamResponse:
        """Send the request, with its body passing through the visits' streams."""
        env = self._env
        if self._headers is not None and self._headers != self._given:
            write_headers(env, self._headers)
        if env["REQUEST_METHOD"] != "PUT":
            return forward()
        size = content_length(env)
        env["wsgi.input"] = self._input = TrackedInput(env["wsgi.input"], size)
        streams = self._streams_in() if self._bodies else []
        if not streams:
            return forward()
        pipe = Pipe([stream for _, stream in streams])
        if not any(visitor.info.changes_content for visitor, _ in streams):
            env["wsgi.input"] = ObservedInput(env, pipe)
            return forward()
        body = encoding.prepare_upload(env, RewritingEncoder(pipe), size, any(visitor.heavy for visitor, _ in streams))
        try:
            return forward()
        finally:
            if body is not None:
                body.close()

    def _streams_in(self) -> list[tuple[Filter, Stream]]:
        streams: list[tuple[Filter, Stream]] = []
        for visitor, _, visit in self._visits:
            stream = self._contained(visitor, visit.body_in)
            if stream is not None:
                streams.append((visitor, ContainedStream(stream, partial(self._contained, visitor))))
        return streams

    # -- out ---------------------------------------------------------------------------------

    def _way_out(
        self, answer: UpstreamResponse, visits: Sequence[tuple[Filter, Call, Visit]], choose: Choose | None
    ) -> UpstreamResponse:
        """Pass the response through the visits, the last one first."""
        protected = any(map(self._host.is_protective, answer.filters)) or self._protected
        reply = Reply(answer.status, Headers(answer.headers), answer.body)
        try:
            if choose is not None:
                visits = self._drop_visits(visits, choose(answer))
                if not self._visits:
                    return answer
            for visitor, call, visit in reversed(visits):
                call.protected = protected
                reply = self._contained(visitor, partial(visit.response, reply))
                if self._env["REQUEST_METHOD"] == "GET" and reply.code in (200, 206):
                    self._wrap(visitor, visit, reply)
        except BaseException:
            close_if_possible(reply.body)
            raise
        body: Iterable[bytes]
        if isinstance(reply.body, list | tuple):
            body = FinalList(reply.body, self.end)
        else:
            body = FinalBody(reply.body, self.end, self._env["REQUEST_METHOD"] == "HEAD" or reply.code in (204, 304))
        made = UpstreamResponse.build(reply.status, list(reply.headers.items()), body)
        made.exc_info, made.filters = answer.exc_info, answer.filters
        return made

    def _drop_visits(
        self, visits: Sequence[tuple[Filter, Call, Visit]], holding: Collection[Filter] | None
    ) -> list[tuple[Filter, Call, Visit]]:
        """Return the ``visits`` that stay: the response decides about filters with ``info.on_answer``."""
        kept = []
        for step in visits:
            visitor, call, visit = step
            if holding is None:
                holds = call.decided
            else:
                holds = not visitor.info.on_answer or any(_is_same(visitor, other) for other in holding)
            if holds:
                kept.append(step)
            else:
                self._visits.remove(step)
                self._end_visit(visitor, visit, False)
        return kept

    def _wrap(self, visitor: Filter, visit: Visit, reply: Reply) -> None:
        stream = self._contained(visitor, partial(visit.body_out, reply))
        if stream is None:
            return
        reply.body = DecodedBody(reply.body, ContainedStream(stream, partial(self._contained, visitor)), visitor.heavy)
        if visitor.info.changes_content:
            reply.headers.pop("Etag")
        if visitor.info.changes_length:
            for name in ("Content-Length", "Content-Range", "Accept-Ranges"):
                reply.headers.pop(name)

    def _contained(self, visitor: Filter, action: Callable[[], T]) -> T:
        """Return the result of a filter's ``action``.

        :raises SluiceError: when it failed
        """
        try:
            return action()
        except SluiceError:
            raise
        except Exception as error:
            self._host.logger.exception("sluice: filter `%s` failed", visitor.info.keyword)
            raise FilterError(f"filter `{visitor.info.keyword}` failed: {type(error).__name__}") from error


def _is_same(visitor: Filter, other: Filter) -> bool:
    """Whether both are the same filter with the same parameters; instances may be created again."""
    return visitor is other or (type(visitor) is type(other) and visitor.params == other.params)
