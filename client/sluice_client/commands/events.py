"""``event``: failures in the cluster, and their ends."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from cliff.formatters.base import ListFormatter
from stevedore.extension import Extension

from sluice_client.command_base.arguments import Argument
from sluice_client.command_base.command import ListCommand
from sluice_client.errors import ApiError, ClientError, Unreachable
from sluice_client.resources import policies
from sluice_client.resources.columns import Data, printable

_SHORTEST: Final = 0.5
_LONGEST: Final = 10.0
#: An empty page in less than this time was returned without waiting: the controller had no free slot.
_SOON: Final = 1.0
SEVERITIES: Final = ("info", "warning", "error")
#: The format for collectors of logs: a line of JSON for each event, as the controller answers it.
LINES: Final = "jsonl"
#: The default format of commands, and the formats that are followed as lines of JSON.
_DEFAULT: Final = "table"
_AS_JSON: Final = (LINES, "json")
#: Seconds for which one request waits for an event.
_WAIT: Final = 25.0


def follow_pages(
    fetch: Callable[[str], Data],
    name: str,
    since: str,
    say: Callable[[str], object],
    pause: Callable[[float], object] = time.sleep,
) -> Iterator[Data]:
    """Yield the items of page after page, without end; an unreachable controller does not end it.

    :param fetch: given an id, returns the page behind it, which may be delayed until its first item
    :param name: field of the page with its items
    :param say: receives a line when the controller is unreachable, and when it is back
    """
    seconds, trouble = _SHORTEST, ""
    while True:
        began = time.monotonic()
        try:
            page = fetch(since)
        except (ApiError, Unreachable) as error:
            if isinstance(error, ApiError) and error.status != 503:
                raise
            if not trouble:
                say(f"{error}; trying again")
            trouble = str(error)
            pause(seconds)
            seconds = min(seconds * 2, _LONGEST)
            continue
        if trouble:
            say("the controller answers again")
        seconds, trouble = _SHORTEST, ""
        yield from page[name]
        since = page["last"]
        if not page[name] and time.monotonic() - began < _SOON:
            pause(_SOON)


class JsonLines(ListFormatter):
    """Rows as lines of JSON."""

    def add_argument_group(self, parser: Any) -> None:
        """Called by cliff; there are no options."""

    def emit_list(self, column_names: Sequence[str], data: Iterable[Any], stdout: Any, parsed_args: Any) -> None:
        """Called by cliff; ``data`` are events."""
        for event in data:
            stdout.write(json.dumps(event, ensure_ascii=False) + "\n")


class ListEvents(ListCommand, words="event list"):
    """List events of the cluster, oldest first: failures and their ends; or follow new ones."""

    columns = policies.EVENT_LIST
    arguments = (
        Argument(
            "--since", "only those from this time on (ISO 8601, unix seconds), or behind this id", {"default": ""}
        ),
        Argument("--severity", "only those of at least this severity", {"choices": SEVERITIES, "default": ""}),
        Argument("--node", "only those of this node", {"default": ""}),
        Argument("--policy", "only those about this policy", {"default": "", "metavar": "ID"}),
        Argument("--follow", "follow new events, until it is interrupted", {"action": "store_true"}),
    )
    examples = (
        "--severity warning --since 2026-01-31T00:00:00Z",
        "--follow",
        "--follow -f jsonl > events.json",
    )

    def _load_formatter_plugins(self) -> Any:
        """Called by cliff, which has no format of lines of JSON."""
        found = super()._load_formatter_plugins()
        found.extensions.append(Extension(LINES, None, JsonLines, JsonLines()))  # type: ignore[arg-type]
        return found

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """Return all stored events that match."""
        return self.client.events(since=args.since, **_wanted(args))

    def produce_output(self, parsed_args: Namespace, column_names: Sequence[str], data: Any) -> int:
        """Called by cliff."""
        if parsed_args.formatter != LINES:
            return super().produce_output(parsed_args, column_names, data)
        self.formatter.emit_list(column_names, self.raw, self.app.stdout, parsed_args)
        return 0

    def run(self, parsed_args: Namespace) -> int:
        """Called by cliff."""
        if not parsed_args.follow:
            return super().run(parsed_args)
        if parsed_args.formatter not in (_DEFAULT, *_AS_JSON):
            given = f"`-f {parsed_args.formatter}` has an end, `--follow` none"
            raise ClientError(f"{given}: expected `-f {LINES}`, or no -f")
        as_json = parsed_args.formatter in _AS_JSON or self.wants_json(parsed_args)
        found = follow_pages(lambda since: self._page(since, parsed_args), "events", parsed_args.since, self.say)
        for event in found:
            self.app.stdout.write((json.dumps(event, ensure_ascii=False) if as_json else _line(event)) + "\n")
            self.app.stdout.flush()
        raise AssertionError("it is followed until it is interrupted")

    def _page(self, since: str, args: Namespace) -> Data:
        return self.client.event_page(since, _WAIT, **_wanted(args))


def _wanted(args: Namespace) -> dict[str, str]:
    return {"severity": args.severity, "node": args.node, "policy": args.policy}


def _line(event: Data) -> str:
    return printable(f"{event['at']} {event['severity']:7} {event['kind']}: {event['text']}")
