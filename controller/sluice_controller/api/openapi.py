"""Words that the views describe themselves with; drf-spectacular makes the schema out of them."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse

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
SENTENCES: Final = (
    (
        "when a tenant writes much",
        "FOR TENANT AUTH_test WHEN PUTS_SEC > 3 DO SET compression WITH engine=zstd TRANSIENT",
    ),
    ("documents of a container", "FOR CONTAINER AUTH_test/logs WHEN OBJECT_TYPE = DOCS DO SET compression"),
    ("two at once", "FOR TENANT AUTH_a DO SET compression; FOR TENANT AUTH_b DO SET compression WITH engine=gzip"),
)


class TokenScheme(OpenApiAuthenticationExtension):
    """Describes :class:`sluice_controller.api.authentication.TokenAuthentication`."""

    target_class = "sluice_controller.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Called by drf-spectacular."""
        return {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}


def answers(good: dict[Any, Any], *errors: int) -> dict[Any, Any]:
    """All answers of an operation: the good ones, ``errors``, and those that any may have."""
    found = {status: OpenApiResponse(ErrorSerializer, REASONS[status]) for status in sorted({*errors, *_ALWAYS})}
    return {**good, **found}


def sentence_examples() -> list[OpenApiExample]:
    """Request bodies that work."""
    return [OpenApiExample(name, value={"policy": text}, request_only=True) for name, text in SENTENCES]


def query(name: str, kind: Any, text: str, **more: Any) -> OpenApiParameter:
    """A parameter behind the question mark."""
    return OpenApiParameter(name, kind, OpenApiParameter.QUERY, description=text, **more)


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
