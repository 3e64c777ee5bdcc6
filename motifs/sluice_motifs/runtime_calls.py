"""The calls of the API on a runtime, over any shim; implements ``sluice_motif_control.calls.MotifCalls``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluice_core.describe import Scalar
from sluice_core.errors import CallerError, NotFound, PeerError
from sluice_motif_control.messages import MotifTemplate
from sluice_motifs.contraction.preparation import VERIFICATIONS
from sluice_motifs.dependencies.freshness import Templates
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.records import Motif
from sluice_motifs.storage.shim import Shim, find_item

#: The most items that one call lists.
MOST_LISTED: Final = 1000


@dataclass(eq=False)
class RuntimeCalls:
    """
    :param guard: returns why no item may be contracted now; empty when items may
    :param admit: called before a motif is attached: raises an error for an item that may not have it, else notes the
        item
    :param space_of: returns the state of an item's space, empty without one
    """

    runtime: Runtime
    shim: Shim
    guard: Callable[[], str] = str
    space_of: Callable[[str], Mapping[str, Any]] = lambda name: {}
    admit: Callable[[str, Motif], object] = lambda name, motif: None

    def attach(self, item: str, template: str, params: Mapping[str, Scalar], identity: str) -> dict[str, Any]:
        motif = self.runtime.create_motif(template, params, identity)
        self.admit(item, motif)
        self.runtime.attach_motif(item, motif)
        return self.show(item)

    def detach(self, item: str, template: str = "") -> dict[str, Any]:
        motifs = [one for one in find_item(self.shim, item, "object").record.motifs if template in ("", one.template)]
        if not motifs:
            raise NotFound(f"`{item}` has no motif" + (f" of template `{template}`" if template else ""))
        for motif in motifs:
            self.runtime.detach_motif(item, motif)
        return self.show(item)

    def show(self, item: str) -> dict[str, Any]:
        view = find_item(self.shim, item, "object")
        known = self.runtime.items.statistics(item)
        return {
            "item": item,
            "size": view.plain.size,
            "contracted": view.contracted,
            "motifs": [_motif(one) for one in view.record.motifs],
            "sources": sorted(view.record.made_from),
            "opens": known.opens if known else 0,
            "expansion_seconds": known.expansion_seconds if known else 0.0,
        }

    def expand(self, item: str) -> dict[str, Any]:
        self.runtime.expand(item)
        return self.show(item)

    def contract(self, item: str, verify: str = "head") -> dict[str, Any]:
        if verify not in VERIFICATIONS:
            raise CallerError(f"verify is `{verify}`, expected one of {', '.join(VERIFICATIONS)}")
        suspended = self._suspended()
        if suspended:
            raise PeerError(suspended)
        outcome = self.runtime.contract(item, verify)
        return {**self.show(item), "outcome": outcome}

    def why(self, item: str) -> dict[str, Any]:
        view = find_item(self.shim, item, "object")
        obstacle = "" if view.contracted else self.runtime.obstacle(item)
        reasons = [one for one in (obstacle, "" if view.contracted else self._suspended()) if one]
        return {
            **self.show(item),
            "contractible": not reasons,
            "reasons": reasons,
            "space": dict(self.space_of(item)) or None,
        }

    def list_items(self, under: str = "", marker: str = "", limit: int = 100) -> list[dict[str, Any]]:
        """The items of the table, without viewing any object."""
        listed = []
        for name in self.runtime.items.names(under, marker, min(max(limit, 1), MOST_LISTED)):
            known = self.runtime.items.statistics(name)
            if known is not None:
                listed.append(
                    {"item": name, "size": known.size, "contracted": not known.expanded, "opens": known.opens}
                )
        return listed

    def contracted(self, under: str) -> Iterator[tuple[str, int]]:
        if not self.runtime.items.complete:
            raise PeerError("not all objects with motifs are known: a scan of the storage has not ended")
        for name in self.runtime.items.names(under):
            known = self.runtime.items.statistics(name)
            if known is not None and not known.expanded:
                yield name, known.size

    def _suspended(self) -> str:
        reason = self.guard()
        return f"contraction is suspended: {reason}" if reason else ""


def _motif(motif: Motif) -> dict[str, Any]:
    return {"template": motif.template, "params": dict(motif.params), "attached_by": motif.identity}


def described_templates(templates: Templates) -> tuple[MotifTemplate, ...]:
    """A daemon's announcement of its templates."""
    return tuple(MotifTemplate.describe(one.info, one.relation, one.exact) for one in templates.values())
