"""Imports from Swift that all parts of the middleware use.

The other modules of this package import names that only one part needs.
"""

from __future__ import annotations

from swift.common import constraints
from swift.common.exceptions import ChunkReadError
from swift.common.registry import register_swift_info
from swift.common.request_helpers import (
    csv_append,
    get_container_update_override_key,
    resolve_etag_is_at_header,
    resolve_ignore_range_header,
)
from swift.common.storage_policy import POLICIES, REPL_POLICY
from swift.common.swob import (
    HTTPBadRequest,
    HTTPConflict,
    HTTPException,
    HTTPRequestEntityTooLarge,
    HTTPServiceUnavailable,
    HTTPUnprocessableEntity,
    Range,
    Request,
    Response,
    header_to_environ_key,
    multi_range_iterator,
    normalize_etag,
)
from swift.common.utils import close_if_possible, config_true_value, drain_and_close, get_logger, reiterate
from swift.common.wsgi import make_pre_authed_env
from swift.proxy.controllers.base import get_container_info
