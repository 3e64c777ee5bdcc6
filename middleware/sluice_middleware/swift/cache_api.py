"""What the cache imports from Swift: conditional responses and ranges of an object."""

from __future__ import annotations

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.request_helpers import resolve_etag_is_at_header, resolve_ignore_range_header
from swift.common.swob import Request, Response, multi_range_iterator
from swift.common.utils import Timestamp, config_true_value, get_logger
from swift.proxy.controllers.base import get_container_info
