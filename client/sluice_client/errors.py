"""Errors between a client and the controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class ClientError(Exception):
    """Root of all exceptions that this package raises on purpose."""


class Unreachable(ClientError):
    """No answer arrived, or no valid one of the controller; a change may or may not have happened.

    ``passing`` is true when the connection failed, so that the same request may succeed a moment later.
    """

    def __init__(self, message: str, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


class ApiError(ClientError):
    """The controller refused, with the HTTP ``status`` and for the reason ``message``.

    ``problems`` are the errors in a policy's text, each with ``message``, ``line``, ``column``,
    ``end_column``, ``caret`` and ``near_miss``; ``request_id`` names the request in the controller's log.
    """

    def __init__(
        self, status: int, message: str, problems: Sequence[Mapping[str, Any]] = (), request_id: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.problems = tuple(problems)
        self.request_id = request_id

    def __str__(self) -> str:
        named = f" (Request-ID: {self.request_id})" if self.request_id else ""
        # the controller's message is a summary of the faults; the following lines show each in full
        is_summary = any(problem["message"] in self.message for problem in self.problems)
        shown = [f"{'the text is refused' if is_summary else self.message} (HTTP {self.status}){named}"]
        for problem in self.problems:
            place = f"line {problem['line']}, column {problem['column']}"
            shown.append(f"{problem['severity']}: {place}: {problem['message']}")
            shown += [f"  {line}" for line in str(problem["caret"]).split("\n")]
        return "\n".join(shown)
