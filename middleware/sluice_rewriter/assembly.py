"""Builds a rewriter out of its configuration."""

from __future__ import annotations

import logging

from sluice_core.logs import start_logging
from sluice_core.store.store import Store
from sluice_middleware.wsgi.internal_daemon import load_app
from sluice_middleware.wsgi.worker_context import WorkerContext
from sluice_rewriter.daemon import Rewriter
from sluice_rewriter.settings import read_settings


def make_rewriter(path: str) -> Rewriter:
    """The rewriter that the file at ``path`` describes.

    :raises OptionError: when the file cannot be used
    """
    values = read_settings(path)
    start_logging(values["log_level"])
    app = load_app(path)
    store = Store(values["redis_url"], values["redis_prefix"])
    context = WorkerContext(values, logging.getLogger("sluice"))
    return Rewriter(store, app, context, values["concurrency"])
