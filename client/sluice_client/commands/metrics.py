"""``metric``: what policies and controllers watch, also code that is uploaded to measure it."""

from __future__ import annotations

from typing import Final

from sluice_client.command_base.code_crud import (
    MAIN,
    DownloadCode,
    ListInstances,
    RollBackCode,
    StartCode,
    StopCode,
    UploadCode,
)
from sluice_client.command_base.command import Argument, repeated_option, seconds_option
from sluice_client.command_base.crud import (
    CreateResource,
    DeleteResources,
    ListResources,
    Resource,
    ShowResource,
    UpdateResource,
)
from sluice_client.resources import code, policies

METRIC: Final = Resource(
    "metric",
    "/registry/metrics",
    "metrics",
    policies.METRIC_LIST,
    code.UPLOADED_METRIC,
    fields=(
        Argument("--unit", "of its values"),
        Argument("--type", "gauge, counter or rate"),
        repeated_option(
            "--granularity", "what it is measured per: object, container, tenant, cluster or node", "granularities"
        ),
        seconds_option("--period", "the length of a window", None),
        Argument("--location", "exchange and routing key of its batches"),
        Argument("--help-text", "what it says", {"dest": "help", "metavar": "TEXT"}),
    ),
    force="even while policies use it, which keep what it meant",
)


class ListMetrics(ListResources):
    """List what policies can watch."""

    resource = METRIC


class ShowMetric(ShowResource):
    """Show a metric."""

    resource = METRIC
    examples = ("PUTS_SEC",)


class CreateMetric(CreateResource):
    """Register a metric that something else publishes; `metric upload` brings one of your own."""

    resource = METRIC
    examples = ("CPU_BUSY --unit fraction --granularity node --period 10",)


class SetMetric(UpdateResource):
    """Change a registered metric; what is not named stays."""

    resource = METRIC
    examples = ("CPU_BUSY --period 5",)


class DeleteMetric(DeleteResources):
    """Forget registered or uploaded metrics."""

    resource = METRIC
    examples = ("CPU_BUSY",)


class UploadMetric(UploadCode):
    """Bring the code of a metric, or another revision of it; a new one is not measured before it is started."""

    resource = METRIC
    options = (MAIN,)
    examples = ("HEADS_SEC heads.py", "HEADS_SEC heads.py --main Heads --wait 10")


class StartMetric(StartCode):
    """Let all proxies measure uploaded metrics."""

    resource = METRIC
    examples = ("HEADS_SEC --wait 10",)


class StopMetric(StopCode):
    """Measure uploaded metrics no more; refused while policies watch them."""

    resource = METRIC
    forcible = True
    examples = ("HEADS_SEC",)


class RollBackMetric(RollBackCode):
    """Give an uploaded metric the code of an earlier revision again, as a new revision."""

    resource = METRIC
    examples = ("HEADS_SEC", "HEADS_SEC --revision 1 --wait 10")


class DownloadMetric(DownloadCode):
    """Write the code of an uploaded metric into a file."""

    resource = METRIC
    examples = ("HEADS_SEC heads.py",)


class ListMetricInstances(ListInstances):
    """List the nodes that measure an uploaded metric, in which revision, and why not."""

    resource, instances = METRIC, code.METRIC_INSTANCE_LIST
    examples = ("HEADS_SEC",)
