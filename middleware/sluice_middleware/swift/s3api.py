"""Imports of S3 Select from Swift's s3api.

s3api has no registry of operations.  It offers a class whose ``handle_request`` gets a
parsed request with its signature; :class:`SelectApi` is
that class with one more operation, created from a running ``S3ApiMiddleware`` with all its settings.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from swift.common.middleware.s3api.acl_handlers import ObjectAclHandler
from swift.common.middleware.s3api.etree import DocumentInvalid, XMLSyntaxError, fromstring
from swift.common.middleware.s3api.s3api import S3ApiMiddleware
from swift.common.middleware.s3api.s3response import ErrorResponse, HTTPOk, MalformedXML

Env = dict[str, Any]


#: Returns the response to a GET of the request's object with the rights of its client, with further headers of the GET;
#: raises S3's own errors.
GetObject = Callable[[Mapping[str, str]], Any]
#: Takes the body of a request and the function that reads its object; returns the response.
Answering = Callable[[bytes, GetObject], Iterable[bytes]]
#: Headers of the POST that do not apply to the GET that replaces it.
_OF_THE_POST = ("HTTP_RANGE", "HTTP_IF_RANGE", "CONTENT_TYPE", "HTTP_CONTENT_MD5", "HTTP_TRANSFER_ENCODING")


def is_s3api(app: object) -> bool:
    """Whether ``app`` is Swift's s3api."""
    return isinstance(app, S3ApiMiddleware)


class S3Error(ErrorResponse):  # type: ignore[misc]
    """An error as S3 writes it, with a code of S3 Select's."""

    _status = "400 Bad Request"

    def __init__(self, code: str, message: str, status: str = "400 Bad Request") -> None:
        self._code = code
        # XML has no control characters
        super().__init__("".join(one if one.isprintable() else " " for one in message), status=status)


class SelectApi(S3ApiMiddleware):  # type: ignore[misc]
    """s3api for requests that select from an object."""

    def __init__(self, s3api: S3ApiMiddleware, answering: Answering, longest: int) -> None:
        """
        :param s3api: the middleware whose place and settings it shares
        :param longest: the most bytes of a request's body
        """
        self.__dict__.update(s3api.__dict__)
        self._answering = answering
        self._longest = longest

    def handle_request(self, req: Any) -> Any:
        """Answer a request whose signature is parsed (the GET checks it)."""
        if not req.is_object_request:
            raise S3Error("InvalidRequest", "a key must be specified")
        body = req.xml(self._longest)
        if not body:
            raise MalformedXML()
        req.method = "GET"  # s3api checks the permissions of this method
        for name in _OF_THE_POST:
            req.environ.pop(name, None)
        req.environ["wsgi.input"] = io.BytesIO()
        req.environ["CONTENT_LENGTH"] = "0"
        req.set_acl_handler(ObjectAclHandler(req, self.logger))
        events = self._answering(body, partial(self._get_object, req))
        return HTTPOk(app_iter=events, headers={"Content-Type": "application/octet-stream"})

    def _get_object(self, request: Any, headers: Mapping[str, str]) -> Any:
        query = {"version-id": request.params["versionId"]} if "versionId" in request.params else {}
        return request.get_response(self.app, "GET", headers=dict(headers), query=query)


def parse_xml(text: bytes) -> Any:
    """The root element, without namespaces.

    :raises MalformedXML: when the body is no XML
    """
    try:
        return fromstring(text)
    except (XMLSyntaxError, DocumentInvalid) as error:
        raise MalformedXML() from error
