"""The operations of the controller: method, path and parameters of each, as the schema has them.

``make generate`` writes ``operations.json`` from the schema.  :meth:`OperationCaller.call` calls an operation by its
id; :func:`calls` makes a method from a signature with the operation's parameters.
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
    :param query: names of the parameters behind the question mark, if there is a body
    :param items: the field of a page with its items; empty if the answer is not a page
    :param has_body: whether parameters in neither path nor query are sent as JSON
    :param is_keyed: whether it takes an idempotency key, with which it is executed once
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
        """Return the answer of an operation; for a list, an iterator that fetches each page when it is needed.

        :param operation: its id in ``/schema``
        :param whole_body: the body, if not the values of ``given`` in neither path nor query
        :param etag: refuse (412) when the item has another one
        :param one_page: return the first page of a list, not the items of all pages
        :param once: never send it again; ``accepted``: statuses from 400 on that are not errors
        :param given: values for path, query (where empty ones are left out) and body
        :raises KeyError: for an unknown operation, or when a name of its path is not ``given``
        """
        known = operations()[operation]
        path = known.path.format_map(_QuotedParts(given))
        rest = {name: value for name, value in given.items() if f"{{{name}}}" not in known.path}
        named = known.query if known.has_body else tuple(rest)  # the controller reports near misses of unknown names
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
    """Decorate a method: it calls ``operation`` with its arguments, except those that have their default values.

    :param answer: the field of the answer that is returned, or a function of the answer
    :param names: the operation's name of an argument, ``text="policy"``; or other parameters of
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
