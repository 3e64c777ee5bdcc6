"""The duration of this folder's tests: ``SLUICE_FUZZ=50`` makes it fifty times as long, and different each time."""

import os

from hypothesis import HealthCheck, settings

_TIMES = int(os.environ.get("SLUICE_FUZZ", "1"))


def calm(examples: int) -> settings:
    """Without a deadline, and the same each time unless ``SLUICE_FUZZ`` is set."""
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    return settings(
        max_examples=examples * _TIMES, deadline=None, suppress_health_check=checks, derandomize=_TIMES == 1
    )
