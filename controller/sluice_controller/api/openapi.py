"""Declares operations; the schema, the URLs and the rules of oslo.policy follow from the declarations.

:func:`operation` decorates a function with its call, the rule that guards it and its texts in the schema.
Parts that follow from others are not repeated: each operation has a request id and the errors of any request; one that
takes a body has the errors of bodies; one with ``If-Match`` has 412 and an ``ETag``.

Requests are read by the same declaration: :class:`~sluice_controller.api.view.View` refuses parameters
that the operation does not have and a body that it does not take, and reads the values of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, get_type_hints

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.fields import empty

from sluice_controller.api.permissions import OPEN
from sluice_controller.api.serializers.base import examples
from sluice_controller.api.serializers.sentences import ErrorSerializer
from sluice_controller.catalog.entries import LARGEST_PAGE
from sluice_controller.catalog.nodes import LONGEST_WAIT
from sluice_controller.identity.rules import Rule, declare
from sluice_controller.validation.bodies import empty_body
from sluice_controller.validation.parameters import Query

Function = TypeVar("Function", bound=Callable[..., Any])

REASONS: Final = {
    400: "a parameter, the body or the policy's text is wrong; `problems` names every fault",
    401: "`X-Auth-Token` is missing or not valid",
    403: "the rule named in the message refuses it",
    404: "the object does not exist",
    405: "the object is read-only; `Allow` names the methods that work",
    406: "`Accept` excludes JSON",
    409: "the request contradicts another policy, or the object was changed meanwhile",
    411: "the body has no `Content-Length`",
    412: "`If-Match` names another version",
    413: "the body is too large",
    422: "the code has another digest than the announced one",
    414: "the request line is too long",
    415: "the body is not `application/json`",
    431: "the headers are too many or too long",
    500: "a bug; the log has more under the request's id",
    503: "Redis, Keystone or, for volumes, Cinder is unreachable; `Retry-After` says when to try again",
}
#: The errors of any request, the further ones of a request with a token, and those of one with a body.
_ALWAYS: Final = (400, 406, 414, 431, 500)
_WITH_TOKEN: Final = (401, 403, 503)
_WITH_BODY: Final = (411, 413, 415)

#: A test posts these texts unchanged.
SENTENCES: Final = examples(
    (
        "when a tenant writes much",
        {"policy": "FOR TENANT AUTH_test WHEN PUTS_SEC > 3 DO SET compression WITH engine=zstd TRANSIENT"},
    ),
    (
        "documents of a container",
        {"policy": "FOR CONTAINER AUTH_test/logs WHEN OBJECT_TYPE = DOCS DO SET compression"},
    ),
    (
        "two at once",
        {
            "policy": "FOR TENANT AUTH_a DO SET compression; FOR TENANT AUTH_b DO SET compression WITH engine=gzip",
        },
    ),
)


class TokenScheme(OpenApiAuthenticationExtension):
    """Describes :class:`sluice_controller.api.authentication.TokenAuthentication`."""

    target_class = "sluice_controller.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Called by drf-spectacular."""
        return {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}


class QueryParameter(OpenApiParameter):
    """A parameter of the query; ``read`` returns its value from a query, also when it is missing."""

    def __init__(self, name: str, kind: Any, text: str, read: Callable[[Query, str], Any], **more: Any) -> None:
        super().__init__(name, kind, OpenApiParameter.QUERY, description=text, **more)
        self.read = read


@dataclass(frozen=True, slots=True)
class Operation:
    """The declaration of a call: its permissions and its input.

    :param handler: the function that answers requests, a method of a class of ``view``
    :param rule: the name of its rule
    :param further: names of further rules that it checks for some requests
    :param bodiless: whether a body is refused
    :param guarded: whether ``If-Match`` may name a version
    """

    name: str
    method: str
    path: str
    view: type[Any]
    handler: Callable[..., Any]
    rule: str
    further: tuple[str, ...]
    query: tuple[QueryParameter, ...]
    bodiless: bool
    guarded: bool

    def read_query(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Return the values of all parameters by name.

        :raises CallerError: for an unknown parameter, or a value that is not valid
        """
        query = Query(given, *(one.name for one in self.query))
        return {one.name: one.read(query, one.name) for one in self.query}

    def check_body(self, request: Any) -> None:
        """Refuse a body where the operation takes none; the view reads any other body.

        :raises CallerError: when there is one
        """
        if self.bodiless:
            empty_body(request.data)


#: All declared operations, in the order of their declaration.
OPERATIONS: Final[list[Operation]] = []


def operation(
    call: str,
    rule: Rule | str,
    answer: Any,
    *parameters: OpenApiParameter,
    errors: Sequence[int] | None = None,
    takes: Any = empty,
    examples: Any = None,
    name: str = "",
    summary: str = "",
    description: str = "",
    further: Sequence[Rule] = (),
    view: type[Any] | None = None,
) -> Callable[[Function], Function]:
    """Return a decorator that declares a function, which gets the view, the request, and the parts of the path by name.

    The function's name is the operation's name.  The first paragraph of its docstring is the summary, the others
    are the description, unless these are given.

    :param call: method and path, as Django writes it: ``GET /nodes/<str:node>``
    :param rule: the rule that guards it, or the name of one that another operation declares; :data:`OPEN` if it
        needs no token
    :param answer: the shape of 200, or shapes by status
    :param errors: further errors of this operation, besides those that follow from the rest; by default 404 if its path
        names an object, and 409 if it may change one
    :param takes: the shape of the body; None for an empty body, nothing when the method has none
    :param further: further rules that it checks for some requests
    :param view: the class of its views; by default the type of the function's first parameter
    """
    method, _, path = call.partition(" /")
    if errors is None:
        errors = (*((404,) if "<" in path else ()), *(() if method == "GET" else (409,)))
    takes_body = takes is not empty
    names = {one.name for one in parameters}
    if "If-Match" in names:
        errors = (*errors, 412)
        if "ETag" not in names and answer is not GONE:
            parameters = (*parameters, ETAG)
    statuses = {*errors, *_ALWAYS, *(_WITH_BODY if takes_body else ()), *(() if rule == OPEN else _WITH_TOKEN)}
    faults = {status: OpenApiResponse(ErrorSerializer, REASONS[status]) for status in sorted(statuses)}

    def declare(function: Function) -> Function:
        paragraphs = [" ".join(one.split()) for one in (function.__doc__ or "").split("\n\n")]
        head = summary or paragraphs.pop(0).removesuffix(".")
        declared = extend_schema(
            operation_id=name or function.__name__,
            summary=head,
            description=description or "\n\n".join(paragraphs),
            parameters=[*parameters, REQUEST_ID],
            responses={**(answer if isinstance(answer, dict) else {200: answer}), **faults},
            examples=examples,
            request=takes,
            auth=[] if rule == OPEN else None,
        )(_copy(function))
        OPERATIONS.append(
            Operation(
                name or function.__name__,
                method.lower(),
                path,
                view or next(iter(get_type_hints(function).values())),
                declared,
                _declare_rule(rule),
                tuple(map(_declare_rule, further)),
                tuple(one for one in parameters if isinstance(one, QueryParameter)),
                takes is None,
                "If-Match" in names,
            )
        )
        return function

    return declare


def _copy(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of its own for each declaration, to which drf-spectacular attaches the schema."""

    def handler(view: Any, request: Any, **path: str) -> Any:
        return function(view, request, **path)

    return handler


def _declare_rule(rule: Rule | str) -> str:
    """Its name."""
    if isinstance(rule, str):
        return rule
    declare(rule)
    return rule.name


def query_text(name: str, text: str, **more: Any) -> QueryParameter:
    """A parameter of any text; empty when it is missing."""
    return QueryParameter(name, OpenApiTypes.STR, text, Query.text, **more)


def query_word(name: str, text: str, choices: Sequence[str], default: str | None = None) -> QueryParameter:
    """A parameter that is one of ``choices``; if it is missing ``default``, otherwise empty."""

    def read(given: Query, name: str) -> str:
        return given.one_of(name, choices) or default or ""

    return QueryParameter(name, OpenApiTypes.STR, text, read, enum=choices, default=default)


def query_flag(name: str, text: str) -> QueryParameter:
    """A parameter that is true or false; false when it is missing."""
    return QueryParameter(name, OpenApiTypes.BOOL, text, Query.flag, default=False)


def query_limit(text: str, default: int = 100) -> QueryParameter:
    """The maximum number of objects in an answer; ``text`` names them."""

    def read(given: Query, name: str) -> int:
        return given.integer(name, default, 1, LARGEST_PAGE)

    return QueryParameter("limit", OpenApiTypes.INT, f"{text}, 1 to {LARGEST_PAGE}", read, default=default)


def query_wait(text: str) -> QueryParameter:
    """The maximum time before the answer; ``text`` names the event that it waits for."""
    return QueryParameter(
        "wait",
        OpenApiTypes.FLOAT,
        f"seconds (at most {LONGEST_WAIT:g}) to wait {text}",
        lambda given, name: given.number(name, 0.0, 0.0, LONGEST_WAIT),
    )


def in_path(name: str, text: str) -> OpenApiParameter:
    """A part of the path."""
    return OpenApiParameter(name, OpenApiTypes.STR, OpenApiParameter.PATH, description=text)


def header(name: str, text: str, *statuses: int) -> OpenApiParameter:
    """A header of the answers with ``statuses``, or of the request when there are none."""
    return OpenApiParameter(
        name, OpenApiTypes.STR, OpenApiParameter.HEADER, description=text, response=list(statuses) or False
    )


REQUEST_ID: Final = OpenApiParameter(
    "X-Request-Id",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="the id of this request in the log",
    response=True,
)
WAIT: Final = query_wait("until all live nodes have acknowledged the change")
ETAG: Final = header("ETag", "the object's version, for `If-Match`", 200, 201)
IF_MATCH: Final = header("If-Match", "the `ETag` that the object must still have")
LOCATION: Final = header("Location", "its path", 201)
FORCE: Final = query_flag("force", "also while policies use it; they keep its former meaning")
MARKER: Final = query_text("marker", "`next_marker` of the page before")
LIST: Final = (
    query_limit("objects on a page"),
    MARKER,
    query_text("prefix", "only names that begin with this"),
)
GONE: Final = {204: OpenApiResponse(description="gone")}
