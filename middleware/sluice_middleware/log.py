"""Loggers in Swift's servers: plain ones, and Swift's adapters of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from sluice_core.process.logs import quote_our_records
from sluice_middleware.swift.proxy_api import get_logger

Logger = logging.Logger | logging.LoggerAdapter[Any]


def open_logger(conf: Mapping[str, str], route: str) -> Logger:
    """A logger of Swift's for a Sluice middleware, configured by ``conf``; names in its lines are quoted."""
    quote_our_records()
    found: Logger = get_logger(dict(conf), log_route=route)
    return found
