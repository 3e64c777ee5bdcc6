"""``/changes``: the log of changes, and rollback; ``/export`` and ``/import``: the configuration as a document."""

from __future__ import annotations

from typing import IO, Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import MARKER, WAIT, header, operation, query_flag, query_limit, query_text
from sluice_controller.api.operations.code.base import code_authorizer
from sluice_controller.api.renderers import NonJSONView, YamlRenderer
from sluice_controller.api.resources import render_entry
from sluice_controller.api.serializers import changes as shapes
from sluice_controller.api.serializers.changes import OutcomeSerializer
from sluice_controller.api.serializers.effective import StepSerializer
from sluice_controller.api.view import View
from sluice_controller.configuration import changes, yaml_adapter
from sluice_controller.configuration.configuration import (
    Configuration,
    Transformation,
    configuration_at,
    replace_configuration,
)
from sluice_controller.configuration.export import document
from sluice_controller.configuration.import_ import read_configuration
from sluice_controller.identity.rules import ADMIN, Rule
from sluice_controller.validation.parameters import read_since
from sluice_core.errors import NotFound
from sluice_core.store.change_stream import CONFIGURATION

VERSION = header("ETag", "the version of the configuration, for `If-Match`", 200)
#: The parameters of all calls that replace the configuration.
REPLACING = (
    query_flag("plan", "only show the changes, without making them"),
    query_flag("force", "even if stored objects become unreadable"),
    WAIT,
    header("If-Match", "the `ETag` that the configuration must still have"),
    VERSION,
)


def read_epoch(text: str) -> int:
    """Return the epoch in a path.

    :raises NotFound: when the text is not an epoch
    """
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise NotFound(f"there is no change `{text}`, expected the number of an epoch")
    return int(text)


@operation(
    "GET /changes",
    Rule("sluice:changes:list", ADMIN, "list changes"),
    shapes.ChangePageSerializer,
    query_limit("changes on a page"),
    MARKER,
    query_text("policy", "only changes about this policy"),
    query_text("by", "only changes by this identity"),
    query_text("since", "only changes from this time on, ISO 8601 or unix seconds"),
)
def list_changes(view: View, request: Request) -> Response:
    """List changes, newest first: their time, author and content.

    Changes by actors are listed as well, by `actors@host`. Only the newest changes are kept: `trimmed` is true if
    older ones were removed, `oldest` is the first one that is kept. With a filter a page may have few changes, or none,
    and still have a next page.
    """
    wanted = changes.ChangeFilter(view.given["policy"], view.given["by"], read_since(view.given["since"]))
    page = changes.list_changes(view.backend, wanted, view.given["limit"], view.given["marker"])
    return Response(shapes.ChangePageSerializer.render(page))


@operation(
    "GET /changes/<str:epoch>",
    Rule("sluice:changes:show", ADMIN, "show a change"),
    shapes.ChangeDetailSerializer,
    header("ETag", "the epoch: a change never changes", 200),
)
def show_change(view: View, request: Request, epoch: str) -> Response:
    """Show a change, with the documents that it replaced.

    The change.
    """
    change = changes.find_change(view.backend, read_epoch(epoch))
    known = change.differences
    differences = None if known is None else shapes.DifferenceSerializer.render_all(known)
    catalogue = view.backend.described(view.backend.policy_cache.contents())
    assignments = StepSerializer.render_steps(change.change.puts, catalogue)
    data = shapes.ChangeDetailSerializer.render(change.change, assignments=assignments, differences=differences)
    return render_entry(data, change.change.epoch)


class ReplacingView(View):
    """A call that replaces the configuration; its operation has the parameters :data:`REPLACING`."""

    def replace(self, request: Request, wanted: Transformation) -> Response:
        """The changes that were made, or with ``plan`` would be made."""
        allow = code_authorizer(request)
        outcome = replace_configuration(self.backend, wanted, request.user.name, **self.given, allow=allow)
        self.wait_acknowledged(outcome.epoch)
        return render_entry(shapes.OutcomeSerializer.render(outcome, plan=self.given["plan"]), outcome.version)


@operation(
    "POST /changes/<str:epoch>/rollback",
    Rule("sluice:changes:rollback", ADMIN, "roll back the configuration"),
    shapes.OutcomeSerializer,
    *REPLACING,
    takes=None,
)
def roll_back(view: ReplacingView, request: Request, epoch: str) -> Response:
    """Roll back the configuration to its state after a change, as a new change.

    Policies, the registry and uploaded code become those of that time; unchanged ones are not touched. Actors of
    restored policies start anew. 409 if a document that was replaced since then is not kept any more.
    """
    return view.replace(request, configuration_at(view.backend, read_epoch(epoch)))


# ``/export`` and ``/import``: the whole configuration as one document.

#: A test sends this document unchanged.
EXAMPLE = """\
sluice: 1
policies:
- id: cold-documents
  policy: FOR TENANT AUTH_test WHEN OBJECT_TYPE = PAPERS DO SET compression
- id: busy
  policy: FOR TENANT AUTH_test WHEN PUTS_SEC > 3 DO SET noop TRANSIENT
  enabled: false
registry:
- kind: term
  name: PAPERS
  data:
    values: [pdf, doc]
filters: []
"""


class YamlParser(BaseParser):
    """Documents."""

    media_type = yaml_adapter.MEDIA_TYPE

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        """Called by REST framework when the view first looks at the body."""
        return yaml_adapter.load(stream.read())


class ExportView(NonJSONView):
    """The current configuration."""

    renderer_classes = (YamlRenderer, JSONRenderer)


@operation(
    "GET /export",
    Rule("sluice:configuration:export", ADMIN, "export the configuration"),
    {(200, yaml_adapter.MEDIA_TYPE): OpenApiTypes.OBJECT},
    VERSION,
)
def export_configuration(view: ExportView, request: Request) -> Response:
    """Give the whole configuration as YAML.

    Policies, the registry and uploaded code; the code itself is given by its digests.
    """
    # The version is read first: an import by an older version is refused, instead of overwriting a newer change.
    version = view.backend.store.version(CONFIGURATION)
    return render_entry(document(Configuration.now(view.backend)), version)


class ImportView(ReplacingView):
    """The new configuration."""

    parser_classes = (YamlParser,)


@operation(
    "PUT /import",
    Rule("sluice:configuration:import", ADMIN, "replace the configuration"),
    OutcomeSerializer,
    *REPLACING,
    takes={yaml_adapter.MEDIA_TYPE: OpenApiTypes.OBJECT},
    examples=[
        OpenApiExample(
            "a small one",
            value=yaml_adapter.load(EXAMPLE.encode()),
            media_type=yaml_adapter.MEDIA_TYPE,
            request_only=True,
        )
    ],
)
def import_configuration(view: ImportView, request: Request) -> Response:
    """Replace the whole configuration: all of it, or nothing.

    Objects that are not in the document are deleted, unchanged objects are not touched. Importing an unchanged export
    changes nothing. With `plan`, the answer lists the objects that would be created, replaced and deleted, and nothing
    is changed.
    """
    data, name = request.data, request.user.name
    return view.replace(request, lambda now: read_configuration(data, view.backend, name, now))
