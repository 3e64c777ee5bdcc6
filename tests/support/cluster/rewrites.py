"""Rewrites on a live cluster: one job from its creation to its end."""

from __future__ import annotations

import time

from sluice_client import Client
from sluice_client.errors import ApiError, Unreachable
from sluice_client.rest.transport import Data


def rewrite(api: Client, target: str, goal: str, limit: float = 90.0) -> Data:
    """Rewrite the objects of a target; return the job after its end.

    :raises AssertionError: when it fails, or does not end within ``limit`` seconds
    """
    return wait_rewrite(api, api.create_rewrite(target, goal)["id"], limit)


def wait_rewrite(api: Client, job_id: str, limit: float = 90.0) -> Data:
    """Return a job as soon as it has ended; Redis may be unreachable meanwhile.

    :raises AssertionError: when it fails, does not end within ``limit`` seconds, or its figures are inconsistent
    """
    end = time.monotonic() + limit
    job: Data | None = None
    while job is None or job["state"] != "done":
        assert time.monotonic() < end, job
        assert job is None or job["state"] != "failed", job
        time.sleep(0.1)
        try:
            job = api.rewrite(job_id)
        except (ApiError, Unreachable) as error:
            if getattr(error, "status", 503) != 503:
                raise
        else:
            assert job["objects_done"] <= job["objects"], job
            assert job["bytes_done"] <= job["bytes"], job
    assert (job["objects_done"], job["bytes_done"]) == (job["objects"], job["bytes"]), job
    return job
