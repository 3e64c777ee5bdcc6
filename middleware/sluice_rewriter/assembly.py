"""Builds a rewriter out of its configuration."""

from __future__ import annotations

import logging
from pathlib import Path

from sluice_core.options import OptionError
from sluice_core.store.store import Store
from sluice_middleware.swift import internal_api
from sluice_middleware.wsgi.response import App
from sluice_middleware.wsgi.worker_context import WorkerContext
from sluice_rewriter.daemon import Rewriter
from sluice_rewriter.settings import read_settings


def make_rewriter(path: str) -> Rewriter:
    """The rewriter that the file at ``path`` describes.

    :raises OptionError: when the file cannot be used
    """
    values = read_settings(path)
    level = logging.getLevelNamesMapping().get(values["log_level"].upper())
    if level is None:
        raise OptionError(f"option `log_level` is `{values['log_level']}`, expected debug, info, warning or error")
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    app = _load_app(path)
    store = Store(values["redis_url"], values["redis_prefix"])
    context = WorkerContext(values, logging.getLogger("sluice"))
    return Rewriter(store, app, context, values["concurrency"])


def _load_app(path: str) -> App:
    """Swift's proxy application out of the same file.

    :raises OptionError: when it has none, or one with a gatekeeper, which takes our headers off
    """
    try:
        app: App = internal_api.loadapp(str(Path(path).resolve()), allow_modify_pipeline=False)
        internal_api.InternalClient.check_gatekeeper_not_loaded(app)
    except (LookupError, ValueError, OSError) as error:
        raise OptionError(f"`{path}` describes no proxy application: {error}") from error
    return app
