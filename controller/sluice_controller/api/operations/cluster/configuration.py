"""``/export`` and ``/import``: the whole configuration as one document."""

from __future__ import annotations

from typing import IO, Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import operation
from sluice_controller.api.operations.cluster.changes import REPLACING, VERSION, ReplacingView
from sluice_controller.api.renderers import NonJSONView, YamlRenderer
from sluice_controller.api.resources import render_entry
from sluice_controller.api.serializers.cluster.changes import OutcomeSerializer
from sluice_controller.configuration import yaml_adapter
from sluice_controller.configuration.configuration import Configuration
from sluice_controller.configuration.export import document
from sluice_controller.configuration.import_ import read_configuration
from sluice_controller.identity.rules import ADMIN, Rule
from sluice_core.store.change_stream import CONFIGURATION

#: Accepted as it stands; a test sends it.
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
    """The configuration as it stands."""

    renderer_classes = (YamlRenderer, JSONRenderer)


@operation(
    "GET /export",
    Rule("sluice:configuration:export", ADMIN, "export the configuration"),
    {(200, yaml_adapter.MEDIA_TYPE): OpenApiTypes.OBJECT},
    VERSION,
)
def export_configuration(view: ExportView, request: Request) -> Response:
    """Give the whole configuration as YAML.

    Policies, the registry and uploaded code; of the code itself the digests.
    """
    # the version comes first: whoever imports by an older one is refused rather than too late
    version = view.backend.store.version(CONFIGURATION)
    return render_entry(document(Configuration.now(view.backend)), version)


class ImportView(ReplacingView):
    """The configuration as it shall be."""

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

    What is not in the document is deleted, what is as it stands is not touched. Importing what was exported
    changes nothing. With `plan`, the answer says what would be created, replaced and deleted, and nothing
    is.
    """
    data, name = request.data, request.user.name
    return view.replace(request, lambda now: read_configuration(data, view.backend, name, now))
