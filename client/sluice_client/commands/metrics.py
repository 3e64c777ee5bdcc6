"""``metric``: what policies and controllers watch, also code that is uploaded to measure it."""

from __future__ import annotations

from typing import Final

from sluice_client.command_base import code_crud, crud
from sluice_client.command_base.command import Argument, force_option, repeated_option, seconds_option
from sluice_client.resources import code, policies

METRIC: Final = crud.Resource(
    "metric",
    "/registry/metrics",
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
    delete_options=(force_option("even while policies use it, which keep what it meant"),),
    upload_options=(code_crud.MAIN,),
    stop_options=(force_option("even while policies use it"),),
)


class ListMetrics(crud.ListResources, resource=METRIC):
    """List what policies can watch."""


class ShowMetric(crud.ShowResource, resource=METRIC):
    """Show a metric."""

    examples = ("PUTS_SEC",)


class CreateMetric(crud.CreateResource, resource=METRIC):
    """Register a metric that something else publishes; `metric upload` brings one of your own."""

    examples = ("CPU_BUSY --unit fraction --granularity node --period 10",)


class SetMetric(crud.UpdateResource, resource=METRIC):
    """Change a registered metric; what is not named stays."""

    examples = ("CPU_BUSY --period 5",)


class DeleteMetric(crud.DeleteResources, resource=METRIC):
    """Forget registered or uploaded metrics."""

    examples = ("CPU_BUSY",)


class UploadMetric(code_crud.UploadCode, resource=METRIC):
    """Bring the code of a metric, or another revision of it; a new one is not measured before it is started."""

    examples = ("HEADS_SEC heads.py", "HEADS_SEC heads.py --main Heads --wait 10")


class StartMetric(code_crud.StartCode, resource=METRIC):
    """Let all proxies measure uploaded metrics."""

    examples = ("HEADS_SEC --wait 10",)


class StopMetric(code_crud.StopCode, resource=METRIC):
    """Measure uploaded metrics no more; refused while policies watch them."""

    examples = ("HEADS_SEC",)


class RollBackMetric(code_crud.RollBackCode, resource=METRIC):
    """Give an uploaded metric the code of an earlier revision again, as a new revision."""

    examples = ("HEADS_SEC", "HEADS_SEC --revision 1 --wait 10")


class DownloadMetric(code_crud.DownloadCode, resource=METRIC):
    """Write the code of an uploaded metric into a file."""

    examples = ("HEADS_SEC heads.py",)


class ListMetricInstances(code_crud.ListInstances, resource=METRIC):
    """List the nodes that measure an uploaded metric, in which revision, and why not."""

    columns = code.METRIC_INSTANCE_LIST
    examples = ("HEADS_SEC",)
