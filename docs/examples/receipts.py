"""A request filter that logs each download, and whether the client got all of it."""

import logging

from sluice_core.describe import FILTER, ActionInfo
from sluice_filters.api import Filter, Stream
from sluice_filters.visits import Visit

log = logging.getLogger(__name__)


class Counting(Stream):
    size = 0

    def feed(self, data):
        self.size += len(data)
        return data


class Receipt(Visit):
    def __init__(self, call):
        self.call = call
        self.counting = Counting()

    def body_out(self, reply):
        return self.counting

    def end(self, complete):
        path = f"{self.call.account}/{self.call.container}/{self.call.object}"
        log.info("%s: %d bytes, %s", path, self.counting.size, "complete" if complete else "cut off")


class Receipts(Filter):
    info = ActionInfo("receipts", FILTER, "log each download", on_put=False, on_request=True)

    def visit(self, call):
        return Receipt(call) if call.method == "GET" else None
