"""The stored bytes and the space for them, as the usage reader of a storage node measures them.

Tenants and containers are measured at every replica of their databases, and the highest of these counts.  Space is
that of a node's devices, and of the devices of a storage policy.

The reader sends its batches through a pipe to the agent, which forwards them unchanged.  Each is a frame; a frame with
the name :data:`ACCOUNTS` holds no batch (``sluice_rewrites.accounts``).
"""

from __future__ import annotations

import struct
from typing import Final

from sluice_core.describe import MetricInfo
from sluice_core.errors import DecodeError
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

#: All metrics that agents measure without Swift's workers.
AGENT_METRICS: Final = (*(one.info for one in NODE_METRICS), *USAGE_METRICS)
#: Default seconds between two windows of the metrics that are not measured each second.
SLOW_PERIODS: Final = {one.name: one.period for one in AGENT_METRICS}

#: Replaces a metric's name, which has capital letters.
ACCOUNTS: Final = "accounts"
#: The environment variable in which the agent passes the format of its log to the reader.
FORMAT_VARIABLE: Final = "SLUICE_LOG_FORMAT"
#: Lengths of a metric's name and of the encoded batch, which follow.
HEAD: Final = struct.Struct("!HI")
#: The greatest length of a batch.
LONGEST_BATCH: Final = 256 << 20


def encode_frame(metric: str, body: bytes) -> bytes:
    """One batch with the name of its metric."""
    name = metric.encode()
    return HEAD.pack(len(name), len(body)) + name + body


def decode_head(raw: bytes) -> tuple[int, int]:
    """Lengths of the name and of the batch that follow ``raw``, :data:`HEAD` of them.

    :raises DecodeError: when these are not lengths of a frame
    """
    name, body = HEAD.unpack(raw)
    if not 0 < name <= 1000 or not 0 < body <= LONGEST_BATCH:
        raise DecodeError(f"not the head of a frame: lengths {name} and {body}", raw)
    return name, body
