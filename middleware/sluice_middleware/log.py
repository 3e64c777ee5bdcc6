"""The type of loggers: plain ones, and Swift's adapters of them."""

from __future__ import annotations

import logging
from typing import Any

Logger = logging.Logger | logging.LoggerAdapter[Any]
