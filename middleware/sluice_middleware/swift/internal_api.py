"""What the rewriter imports from Swift: a proxy application inside a daemon, and timestamps."""

from __future__ import annotations

from swift.common.concurrency import Timeout
from swift.common.internal_client import InternalClient
from swift.common.middleware.account_quotas import AccountQuotaMiddleware
from swift.common.middleware.container_quotas import ContainerQuotaMiddleware
from swift.common.utils import FileLikeIter, Timestamp, eventlet_monkey_patch
from swift.common.wsgi import loadapp
