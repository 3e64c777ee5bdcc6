"""Imports from Swift for Sluice's own requests: proxy applications in daemons, single servers, rings."""

from __future__ import annotations

from http.client import HTTPException

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
from swift.common.internal_client import InternalClient
from swift.common.middleware.account_quotas import AccountQuotaMiddleware
from swift.common.middleware.container_quotas import ContainerQuotaMiddleware
from swift.common.ring import Ring
from swift.common.storage_policy import POLICIES
from swift.common.utils import FileLikeIter, GreenAsyncPile, Timestamp, eventlet_monkey_patch, majority_size
from swift.common.wsgi import ConfigString, loadapp
