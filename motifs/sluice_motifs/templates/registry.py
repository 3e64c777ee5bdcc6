"""Which templates there are: ours in one literal list, strangers by the entry point group ``sluice.motif_templates``.

One that cannot be loaded is reported and left out.
"""

from __future__ import annotations

from typing import Final

from sluice_code.plugins import load_plugins
from sluice_core.describe import MOTIF, ActionInfo
from sluice_motifs.api import PRESERVING, RELATIONS, RESOURCES, Template, TemplateContext
from sluice_motifs.templates.compressed import Compressed
from sluice_motifs.templates.concat import Concat
from sluice_motifs.templates.decompressed import Decompressed
from sluice_motifs.templates.derive import Derive
from sluice_motifs.templates.duplicate_of import DuplicateOf
from sluice_motifs.templates.remote_copy import RemoteCopy
from sluice_motifs.templates.tier import Tier
from sluice_motifs.templates.url import Url

GROUP: Final = "sluice.motif_templates"

BUILT_IN: Final[tuple[type[Template], ...]] = (
    Concat,
    DuplicateOf,
    Derive,
    Compressed,
    Decompressed,
    Url,
    RemoteCopy,
    Tier,
)


def load_templates(
    failures: dict[str, str] | None = None, context: TemplateContext | None = None
) -> dict[str, type[Template]]:
    """Every usable template by its keyword, ours first.

    :param context: what the configuration says of what lies outside; by default no host may be called
    :param failures: takes the reason of each plugin that was left out, by the entry point's name
    """
    found = load_plugins(GROUP, BUILT_IN, lambda one: one.info.keyword, unfit, failures)
    return found if context is None else {keyword: one.configured(context) for keyword, one in found.items()}


def unfit(plugin: object) -> str:
    """Why a plugin cannot be used; empty when it can."""
    if not (isinstance(plugin, type) and issubclass(plugin, Template)):
        return f"`{plugin!r}` is not a subclass of Template"
    info = getattr(plugin, "info", None)
    if not isinstance(info, ActionInfo) or info.kind != MOTIF:
        return f"it has no `info` of the kind `{MOTIF}`"
    if info.keyword != info.keyword.lower():
        return f"keyword `{info.keyword}` is not in lower case"
    if plugin.relation not in RELATIONS or plugin.resource not in RESOURCES:
        return f"relation `{plugin.relation}` or resource `{plugin.resource}` is unknown"
    if plugin.relation == PRESERVING and not (plugin.exact and plugin.keeps_copy):
        return "a preserving template must be exact and keep a copy"
    return ""
