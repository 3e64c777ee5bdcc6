"""What is stored, and the space for it, as the usage reader of a storage node measures them.

Tenants and containers are measured at every replica of their databases, and the highest of these counts.  Space is
that of a node's devices, and of the devices of a storage policy.
"""

from __future__ import annotations

from typing import Final

from sluice_core.describe import MetricInfo
from sluice_core.messages.nodes import HIGHEST, LOWEST
from sluice_core.messages.policies import CLUSTER, CONTAINER, TENANT
from sluice_core.metrics.node_metrics import NODE, NODE_METRICS, STORAGE_POLICY

STORED: Final = "STORED"
OBJECTS: Final = "OBJECTS"
NODE_CAPACITY: Final = "NODE_CAPACITY"
NODE_FREE: Final = "NODE_FREE"
STORAGE_POLICY_CAPACITY: Final = "STORAGE_POLICY_CAPACITY"
STORAGE_POLICY_FREE: Final = "STORAGE_POLICY_FREE"

_PERIOD: Final = 60.0
_STORED_LEVELS: Final = (CONTAINER, TENANT, CLUSTER)

USAGE_METRICS: Final = (
    MetricInfo(STORED, "bytes", "bytes of all objects, each once", _STORED_LEVELS, _PERIOD),
    MetricInfo(OBJECTS, "count", "objects stored", _STORED_LEVELS, _PERIOD),
    MetricInfo(NODE_CAPACITY, "bytes", "size of all devices of a node", (NODE,), _PERIOD),
    MetricInfo(NODE_FREE, "fraction", "free share of the devices of a node", (NODE,), _PERIOD),
    MetricInfo(STORAGE_POLICY_CAPACITY, "bytes", "size of all devices of a storage policy", (STORAGE_POLICY,), _PERIOD),
    MetricInfo(
        STORAGE_POLICY_FREE, "fraction", "free share of the devices of a storage policy", (STORAGE_POLICY,), _PERIOD
    ),
)
#: How values of several nodes become one, where they do not add up (``MetricBatch.merge``).
MERGES: Final = {STORED: HIGHEST, OBJECTS: HIGHEST, NODE_FREE: LOWEST, STORAGE_POLICY_FREE: LOWEST}

#: All that agents measure without the help of Swift's workers.
AGENT_METRICS: Final = (*(one.info for one in NODE_METRICS), *USAGE_METRICS)
#: Seconds between two windows of these that are not measured each second, unless a node says otherwise.
SLOW_PERIODS: Final = {one.name: one.period for one in AGENT_METRICS}
