"""``metric``: the metrics of policies and controllers, also uploaded ones."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import Any, Final

from sluice_client.command_base import code_crud, crud
from sluice_client.command_base.arguments import Argument, force_option, names_argument, repeated_option, seconds_option
from sluice_client.command_base.command import ListCommand
from sluice_client.command_base.each import EachCommand
from sluice_client.resources import code, policies, registry
from sluice_client.resources.columns import Data, printable

METRIC: Final = crud.Resource(
    "metric",
    "/registry/metrics",
    policies.METRIC_LIST,
    code.UPLOADED_METRIC,
    fields=(
        Argument("--unit", "of its values"),
        Argument("--type", "gauge, counter or rate"),
        repeated_option("--granularity", "its levels: object, container, tenant, cluster or node", "granularities"),
        seconds_option("--period", "the length of a window", None),
        Argument("--location", "exchange and routing key of its batches"),
        Argument("--help-text", "what it says", {"dest": "help", "metavar": "TEXT"}),
    ),
    delete_options=(force_option("even while policies use it, which keep its meaning"),),
    upload_options=(code_crud.MAIN,),
    stop_options=(force_option("even while policies use it"),),
)


class ListMetrics(crud.ListResources, resource=METRIC, words="metric list"):
    """List the metrics that policies can watch."""


class ShowMetric(crud.ShowResource, resource=METRIC, words="metric show"):
    """Show a metric."""

    examples = ("PUTS_SEC",)


class CreateMetric(crud.CreateResource, resource=METRIC, words="metric create"):
    """Register a metric of another publisher; `metric upload` uploads your own."""

    examples = ("CPU_BUSY --unit fraction --granularity node --period 10",)


class SetMetric(crud.UpdateResource, resource=METRIC, words="metric set"):
    """Change a registered metric; other fields stay."""

    examples = ("CPU_BUSY --period 5",)


class DeleteMetric(crud.DeleteResources, resource=METRIC, words="metric delete"):
    """Delete registered or uploaded metrics."""

    examples = ("CPU_BUSY",)


class UploadMetric(code_crud.UploadCode, resource=METRIC, words="metric upload"):
    """Upload the code of a metric, or another revision of it; a new one is not measured before it is started."""

    examples = ("HEADS_SEC heads.py", "HEADS_SEC heads.py --main Heads --wait 10")


class StartMetric(code_crud.StartCode, resource=METRIC, words="metric start"):
    """Start uploaded metrics: all proxies measure them."""

    examples = ("HEADS_SEC --wait 10",)


class StopMetric(code_crud.StopCode, resource=METRIC, words="metric stop"):
    """Stop measuring uploaded metrics; refused while policies watch them."""

    examples = ("HEADS_SEC",)


class RollBackMetric(code_crud.RollBackCode, resource=METRIC, words="metric rollback"):
    """Roll back an uploaded metric to the code of an earlier revision, as a new revision."""

    examples = ("HEADS_SEC", "HEADS_SEC --revision 1 --wait 10")


class DownloadMetric(code_crud.DownloadCode, resource=METRIC, words="metric download"):
    """Write the code of an uploaded metric into a file."""

    examples = ("HEADS_SEC heads.py",)


class ListMetricInstances(
    code_crud.ListInstances, resource=METRIC, words="metric instance list", earlier="metric instances"
):
    """List the nodes that measure an uploaded metric, with revision, or the reason why not."""

    columns = code.METRIC_INSTANCE_LIST
    examples = ("HEADS_SEC",)


class ShowMetricHistory(ListCommand, words="metric history show", earlier="metric history"):
    """Show the values of a metric in steps; empty where nothing was measured."""

    columns = registry.POINT_LIST
    arguments = (
        Argument("metric", "its name", {"metavar": "METRIC"}),
        Argument(
            "--target", "tenant, tenant/container, tenant/volume id, node, …; default: the cluster", {"default": ""}
        ),
        Argument(
            "--rest",
            "in place of a target, the sum of a level's targets without a series of their own",
            {"choices": ("tenant", "container", "volume"), "default": ""},
        ),
        Argument(
            "--from",
            "ISO 8601, unix seconds, or --from=-3600 for an hour ago; default: ten minutes ago",
            {"dest": "begin", "metavar": "TIME", "default": ""},
        ),
        Argument("--to", "the same; default: now", {"dest": "end", "metavar": "TIME", "default": ""}),
        Argument(
            "--step",
            "1, 10, 60 or a multiple; default: by the range",
            {"type": int, "default": 0, "metavar": "SECONDS"},
        ),
    )
    examples = (
        "PUTS_SEC --target acme",
        "GET_BW_MEASURED --target acme --from=-86400 --step 600 -f csv",
        "PUTS_SEC --rest container",
    )

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """A row of each step."""
        found = self.client.metric_history(args.metric, args.target, args.rest, args.begin, args.end, args.step)
        return map(registry.row_of, found["points"])


class ListMetricSeries(ListCommand, words="metric series list", calls="metric_series"):
    """List the metrics and targets with stored history."""

    columns = registry.SERIES_LIST
    arguments = (
        Argument("--metric", "only of this one", {"default": ""}),
        Argument("--target", "only of this one, as an account rather than the name of a project", {"default": ""}),
    )
    examples = ("--metric PUTS_SEC",)


class DeleteMetricSeries(EachCommand, words="metric series delete"):
    """Delete the history of targets and of what is in them, as of a deleted project."""

    arguments = (names_argument("target", "an account or its project, a container, a volume, a node, …"),)
    asks = "delete the history of {target}"
    examples = ("AUTH_2f8a61d07be94a35",)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Forget one."""
        count = self.client.forget_metric_history(name)
        return f"{printable(name)}: {count} series forgotten", {"target": name, "series": count}
