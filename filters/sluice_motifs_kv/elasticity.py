"""Keeping a database within its byte limit: too many bytes are given up at once, spare space is filled.

Whoever stored too much gives up as much before going on.  What fills spare space is made in the background, one value
at a time.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from sluice_core.errors import CallerError, DecodeError, SluiceError
from sluice_motifs.contraction.contractor import BUSY
from sluice_motifs.contraction.preparation import TRUST
from sluice_motifs.runtime import Runtime
from sluice_motifs_kv.entries import item_key, item_name
from sluice_motifs_kv.space import Space

log = logging.getLogger(__name__)

#: Victims whose bytes must stay, after which a thread goes on although there are too many.
_MOST_REFUSALS: Final = 16


class Elasticity:
    """The limit of one database; :meth:`start` and :meth:`stop` it."""

    def __init__(self, space: Space, runtime: Runtime) -> None:
        self._space = space
        self._runtime = runtime
        self._enforcing = threading.Lock()
        self._thread = threading.Thread(target=self._refill, name="motif precomputation", daemon=True)

    def start(self) -> None:
        """Begin to fill spare space."""
        self._thread.start()

    def stop(self) -> None:
        """Wait for the expansion that is under way, and begin no other."""
        self._space.close()
        self._thread.join()

    def enforce(self) -> None:
        """Give up bytes until the limit is kept, or too many of them must stay.

        :raises PeerError: when the database cannot be read or written
        """
        if not self._space.exceeded:
            return
        refusals = 0
        with self._enforcing:
            while refusals < _MOST_REFUSALS and (key := self._space.next_victim()) is not None:
                try:
                    refused = self._runtime.contract(item_name(key), TRUST) == BUSY
                except (CallerError, DecodeError) as error:
                    log.debug("%s", error)
                    refused = True
                if refused:
                    self._space.postpone(key)
                    refusals += 1

    def contract(self, name: str, verify: str) -> str:
        """As ``Runtime.contract``; the bytes are not made in advance until somebody has read them."""
        self._space.exclude(item_key(name))
        return self._runtime.contract(name, verify)

    def _refill(self) -> None:
        while (key := self._space.wait_for_refill()) is not None:
            try:
                self._runtime.expand(item_name(key))
                self.enforce()
            except SluiceError as error:
                log.warning("`%s` is not made in advance: %s", item_name(key), error)
