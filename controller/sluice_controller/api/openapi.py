"""How views declare their operations; drf-spectacular makes the schema out of that.

:func:`operation` decorates a method of a view with the rule that guards it and with what the schema says of it.  What
follows from the rest is not repeated: each operation has a request id and the errors that any request may meet; one
that takes a body has those of bodies; one with ``If-Match`` has 412 and an ``ETag``.  :func:`operations` declares
methods that a view inherits, :func:`list_operation` and its siblings the five operations of a resource.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view

from sluice_controller.api.permissions import named_rules
from sluice_controller.api.serializers.base import examples
from sluice_controller.api.serializers.policies import ErrorSerializer

REASONS: Final = {
    400: "a parameter, the body or the policy's text is wrong; `problems` names everything that is",
    401: "`X-Auth-Token` is missing or not valid",
    403: "the rule that the message names does not allow it",
    404: "there is no such thing",
    406: "`Accept` excludes JSON",
    409: "contradicts another policy, or something changed meanwhile",
    411: "the body has no `Content-Length`",
    412: "`If-Match` names another version",
    413: "the body is too large",
    422: "the code has another digest than the announced one",
    414: "the request line is too long",
    415: "the body is no `application/json`",
    431: "the headers are too many or too long",
    500: "a bug; the log knows more under the request's id",
    503: "Redis or Keystone is away; `Retry-After` says when to try again",
}
#: What any request may be answered, and what any request with a body may.
_ALWAYS: Final = (401, 403, 406, 414, 431, 500, 503)
WITH_BODY: Final = (400, 411, 413, 415)

#: Accepted as they stand; a test posts them.
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
#: In the place of a body's shape: the method takes none.
_NO_BODY: Final = object()


class TokenScheme(OpenApiAuthenticationExtension):
    """Describes :class:`sluice_controller.api.authentication.TokenAuthentication`."""

    target_class = "sluice_controller.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Called by drf-spectacular."""
        return {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}


def error_answers(*statuses: int) -> dict[int, OpenApiResponse]:
    """Answers that are errors."""
    return {status: OpenApiResponse(ErrorSerializer, REASONS[status]) for status in sorted({*statuses})}


def operation(
    rule: str,
    name: str,
    answer: Any,
    *parameters: OpenApiParameter,
    errors: Sequence[int] = (),
    takes: Any = _NO_BODY,
    examples: Any = None,
    summary: str = "",
    description: str = "",
) -> Callable[[Any], Any]:
    """A decorator that declares a method of a view.

    The first paragraph of the method's docstring is the summary, the others are the description, unless these are
    given.

    :param rule: the rule that guards it
    :param answer: the shape of 200, or shapes by status
    :param errors: the errors that this operation may answer besides those that follow from the rest
    :param takes: the shape of the body; None for an empty one
    """
    takes_body = takes is not _NO_BODY
    if any(one.name == "If-Match" for one in parameters):
        errors = (*errors, 412)
    if IF_MATCH in parameters and answer is not GONE:
        parameters = (*parameters, ETAG)
    faults = error_answers(*errors, *(WITH_BODY if takes_body else (400,)), *_ALWAYS)

    def declare(method: Any) -> Any:
        paragraphs = [" ".join(one.split()) for one in method.__doc__.split("\n\n")]
        head = summary or paragraphs.pop(0).removesuffix(".")
        declared = extend_schema(
            operation_id=name,
            summary=head,
            description=description or "\n\n".join(paragraphs),
            parameters=[*parameters, REQUEST_ID],
            responses={**(answer if isinstance(answer, dict) else {200: answer}), **faults},
            examples=examples,
            **({"request": takes} if takes_body else {}),
        )(method)
        declared.rule = rule
        return declared

    return declare


def operations(**declarations: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A decorator that declares methods of a view, by their names, which it may inherit."""

    def declare(view: Any) -> Any:
        declared = extend_schema_view(**declarations)(view)
        declared.rules = named_rules(declared)
        return declared

    return declare


def query(name: str, kind: Any, text: str, **more: Any) -> OpenApiParameter:
    """A parameter behind the question mark."""
    return OpenApiParameter(name, kind, OpenApiParameter.QUERY, description=text, **more)


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
    description="names this request in the log",
    response=True,
)
WAIT: Final = query(
    "wait", OpenApiTypes.FLOAT, "seconds (at most 30) to wait until all live nodes have acknowledged the change"
)
ETAG: Final = header("ETag", "its version, for `If-Match`", 200, 201)
IF_MATCH: Final = header("If-Match", "the `ETag` that it must still have")
LOCATION: Final = header("Location", "its path", 201)
FORCE: Final = query("force", OpenApiTypes.BOOL, "even while policies use it, which keep what it meant", default=False)
LIST: Final = (
    query("limit", OpenApiTypes.INT, "things on a page, 1 to 1000", default=100),
    query("marker", OpenApiTypes.STR, "`next_marker` of the page before"),
    query("prefix", OpenApiTypes.STR, "only what is called so in the beginning"),
)
GONE: Final = {204: OpenApiResponse(description="gone")}


def list_operation(rule: str, name: str, summary: str, page: Any, *path: OpenApiParameter) -> Callable[[Any], Any]:
    """A page of a resource; below an entry, whose ``path`` it has, 404."""
    return operation(rule, name, page, *path, *LIST, errors=((404,) if path else ()), summary=summary)


def create_operation(
    rule: str, name: str, summary: str, shape: Any, takes: Any, examples: Any, *statuses: int
) -> Callable[[Any], Any]:
    """A new entry."""
    return operation(
        rule,
        name,
        {201: shape},
        ETAG,
        LOCATION,
        errors=(409, *statuses),
        takes=takes,
        examples=examples,
        summary=summary,
    )


def show_operation(rule: str, name: str, summary: str, shape: Any, *path: OpenApiParameter) -> Callable[[Any], Any]:
    """An entry."""
    return operation(rule, name, shape, *path, ETAG, errors=(404,), summary=summary)


def update_operation(
    rule: str, name: str, summary: str, shape: Any, takes: Any, *parameters: OpenApiParameter
) -> Callable[[Any], Any]:
    """An entry with other values."""
    headers = (IF_MATCH, ETAG)
    return operation(rule, name, shape, *parameters, *headers, errors=(404, 409), takes=takes, summary=summary)


def delete_operation(rule: str, name: str, summary: str, *parameters: OpenApiParameter) -> Callable[[Any], Any]:
    """An entry taken out."""
    return operation(rule, name, GONE, *parameters, IF_MATCH, errors=(404, 409), summary=summary)
