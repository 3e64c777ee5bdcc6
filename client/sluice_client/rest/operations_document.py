"""The operations of the controller: method, path and parameters of each, as the schema has them.

``make generate`` writes ``operations.json`` out of the schema.  :meth:`OperationCaller.call` calls an operation by its
id; :func:`calls` makes a method of a signature that says what an operation takes.
"""

from __future__ import annotations

import inspect
import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from importlib.resources import files
from typing import Any, Final, TypeVar

from sluice_client.rest.auth import IDEMPOTENCY_HEADER
from sluice_client.rest.collection import Collection, if_match, make_query, quote_part
from sluice_client.rest.transport import Transport

Method = TypeVar("Method", bound=Callable[..., Any])
DOCUMENT: Final = "operations.json"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    :param path: with names in braces: ``/nodes/{node}``
    :param query: names of what may stand behind the question mark, where there is a body
    :param items: the field of a page with its things; empty where the answer is no page
    :param has_body: whether what is in neither path nor query is sent as JSON
    :param is_keyed: whether it takes a key by which it happens once, however often it is sent
    """

    method: str
    path: str
    query: tuple[str, ...] = ()
    items: str = ""
    has_body: bool = False
    is_keyed: bool = False


@cache
def operations() -> Mapping[str, Operation]:
    """All operations by their ids."""
    found = json.loads(files(__package__).joinpath(DOCUMENT).read_text(encoding="utf-8"))
    return {name: Operation(**one) for name, one in found.items()}


class OperationCaller:
    """Calls operations by their ids."""

    _transport: Transport

    def call(
        self,
        operation: str,
        /,
        *,
        whole_body: Mapping[str, Any] | None = None,
        etag: str = "",
        one_page: bool = False,
        once: bool = False,
        accepted: tuple[int, ...] = (),
        **given: Any,
    ) -> Any:
        """The answer of an operation, of which each page is fetched when it is needed, where it is a list.

        :param operation: its id in ``/schema``
        :param whole_body: the body, if not what of ``given`` is in neither path nor query
        :param etag: refuse (412) when the thing has another one meanwhile
        :param one_page: give the first page of a list, and not the things of all pages
        :param once: never send it again; ``accepted``: statuses from 400 on that are no errors
        :param given: what stands in path, query (where what is empty is left out) and body
        :raises KeyError: when there is no such operation, or a name of its path is not ``given``
        """
        known = operations()[operation]
        path = known.path.format_map(_QuotedParts(given))
        rest = {name: value for name, value in given.items() if f"{{{name}}}" not in known.path}
        named = known.query if known.has_body else tuple(rest)  # the controller knows near misses of what it does not
        query = make_query(**{name: rest.pop(name) for name in named if name in rest})
        if known.items and not one_page:
            return Collection(self._transport, path, known.items).list(**query)
        return self._transport.call(
            known.method,
            path,
            body=(rest if whole_body is None else whole_body) if known.has_body else None,
            query=query,
            headers=if_match(etag) | ({IDEMPOTENCY_HEADER: uuid.uuid4().hex} if known.is_keyed else {}),
            patience=query.get("wait", 0.0),
            once=once,
            accepted=accepted,
        )


class _QuotedParts(dict[str, Any]):
    """Values for a path, each quoted as one part of it."""

    def __getitem__(self, name: str) -> str:
        return quote_part(str(super().__getitem__(name)))


def calls(operation: str, answer: Callable[[Any], Any] | str = "", **names: Any) -> Callable[[Method], Method]:
    """A decorator: the method calls ``operation`` with its arguments, but for those that are their defaults.

    :param answer: the field of the answer that is returned, or what makes that of the answer
    :param names: what an argument is called by the operation, ``text="policy"``; or other parameters of
        :meth:`OperationCaller.call`
    """

    def decorate(method: Method) -> Method:
        signature = inspect.signature(method)
        renamed = {name: names[name] for name in signature.parameters if name in names}
        options = {name: value for name, value in names.items() if name not in renamed}

        @wraps(method)
        def send(client: OperationCaller, *args: Any, **kwargs: Any) -> Any:
            given: dict[str, Any] = {}
            for name, value in list(signature.bind(client, *args, **kwargs).arguments.items())[1:]:
                parameter = signature.parameters[name]
                if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                    given |= value
                elif (tuple(value) if isinstance(value, list) else value) != parameter.default:
                    given[renamed.get(name, name)] = value
            found = client.call(operation, **options, **given)
            return answer(found) if callable(answer) else found[answer] if answer else found

        return send  # type: ignore[return-value]

    return decorate
