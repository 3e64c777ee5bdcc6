"""Rewrites on a live cluster: one job from its order to its end."""

from __future__ import annotations

import contextlib
import secrets
import time

from sluice_aio.cluster.cluster import Cluster
from sluice_core.errors import PeerError
from sluice_core.rewrites import operations
from sluice_core.rewrites.messages import RUNNING, RewriteCounts, RewriteJob
from sluice_core.store.store import Store


def rewrite(cluster: Cluster, target: str, goal: str, limit: float = 90.0) -> RewriteCounts:
    """What became of the objects of ``account[/container[/prefix]]``.

    :raises AssertionError: when the job does not end within ``limit`` seconds
    """
    return wait_rewrite(cluster, start_rewrite(cluster, target, goal), limit)


def start_rewrite(cluster: Cluster, target: str, goal: str) -> str:
    """Order a job; its id."""
    account, container, prefix = [*target.split("/", 2), "", ""][:3]
    with contextlib.closing(Store(cluster.redis_url)) as store:
        head = store.head()
        job = RewriteJob(
            secrets.token_hex(8), account, container, prefix, goal, RUNNING, int(time.time() * 1000), "test",
            history=head.history, epoch=head.epoch,
        )  # fmt: skip
        assert store.run(operations.create_job(store.keys, job))
        return job.id


def wait_rewrite(cluster: Cluster, job_id: str, limit: float = 90.0) -> RewriteCounts:
    """What became of the objects of a job, as soon as it has ended; Redis may be away meanwhile.

    :raises AssertionError: when it does not end within ``limit`` seconds
    """
    with contextlib.closing(Store(cluster.redis_url)) as store:
        end, progress = time.monotonic() + limit, None
        while True:
            with contextlib.suppress(PeerError):
                progress = store.run(operations.read_progress(store.keys, job_id))
            if progress is not None and progress.ended:
                return progress.counts
            assert time.monotonic() < end, progress
            time.sleep(0.1)
