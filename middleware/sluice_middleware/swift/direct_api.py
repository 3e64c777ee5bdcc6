"""What is imported from Swift to ask single servers: requests without a proxy, and rings."""

from __future__ import annotations

from swift.common.bufferedhttp import http_connect_raw
from swift.common.concurrency import Timeout
from swift.common.direct_client import (
    DirectClientException,
    direct_delete_container_object,
    direct_get_container,
    direct_head_object,
    direct_put_container_object,
)
from swift.common.exceptions import ClientException
from swift.common.ring import Ring
from swift.common.storage_policy import POLICIES
from swift.common.utils import Timestamp, majority_size
