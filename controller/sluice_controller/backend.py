"""What a request works with: the store, the vocabulary and the clock, made once per process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from django.conf import settings

from sluice_controller.config import Config
from sluice_controller.shelf import Shelf
from sluice_controller.vocabulary import build_catalogue
from sluice_core.store import Store
from sluice_dsl.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class Backend:
    """Handed to services and selectors; they know neither Django nor settings.

    ``now`` is unix time in seconds; ``waiters`` are the places for requests that wait for a roll-out.
    """

    config: Config
    store: Store
    catalogue: Catalogue
    shelf: Shelf
    waiters: threading.BoundedSemaphore
    now: Callable[[], float] = time.time


@lru_cache(maxsize=8)
def open_backend(config: Config) -> Backend:
    """The backend of ``config``; connects when it is first asked, hence after the fork."""
    store = Store(config.redis_url, config.redis_prefix)
    waiters = threading.BoundedSemaphore(config.threads - 1)
    return Backend(config, store, build_catalogue(config.default_tenant), Shelf(store), waiters)


def current() -> Backend:
    """The backend of this process."""
    return open_backend(settings.SLUICE)
