"""How long requests wait behind a point of the way: the filter ``pending`` before a plugin, and its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sluice_block.stack.build import library
from sluice_block.stack.page import Page


@dataclass(frozen=True, slots=True)
class PendingRequests:
    """
    :param page: file of the page, made when it is needed
    :param built: folder of our filters for nbdkit
    """

    page: Path
    built: Path

    def before(self, plugin: Sequence[str]) -> list[str]:
        """nbdkit's arguments for the filter and then ``plugin``; nothing waits there yet."""
        page = Page.open(self.page) if self.page.exists() else Page.create(self.page)
        page.reset_under_way()
        page.close()
        return [f"--filter={library(self.built, 'pending')}", *plugin, f"pending-page={self.page}"]

    def oldest(self) -> float:
        """For how many seconds the oldest request waits; 0 when none does."""
        page = Page.open(self.page)
        try:
            return page.oldest_pending()
        finally:
            page.close()
