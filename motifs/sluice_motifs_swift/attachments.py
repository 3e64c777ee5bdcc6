"""Motifs that clients attach to their objects: the checks, and the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sluice_core.errors import CallerError, Conflict, Forbidden, NotFound
from sluice_middleware.motifs.object_views import target_of
from sluice_middleware.motifs.rights import may_read
from sluice_motifs.api import PRESERVING, Template
from sluice_motifs.dependencies.freshness import internal_sources, sources_of, without_copies
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.records import ItemView, Motif, Plain, Record
from sluice_motifs.storage.shim import Shim, find_item
from sluice_motifs_swift.objects.containers import Containers
from sluice_motifs_swift.objects.copies import is_copy
from sluice_motifs_swift.objects.item_index import ItemIndex


def owns_account(motif: Motif, other: str) -> bool:
    """Whether the identity of a motif owns the account of another object, which may then be contracted, too."""
    return may_read(motif.identity, other.partition("/")[0], lambda: "")


@dataclass(eq=False)
class Attachments:
    """Checks the motifs that clients attach."""

    runtime: Runtime
    shim: Shim
    containers: Containers
    index: ItemIndex
    templates: Mapping[str, type[Template]]

    def attach(self, name: str, wanted: Iterable[Mapping[str, Any]], identity: str, fresh: bool) -> str:
        """The value to write with the object: the text of its record, for an existing object the value of a posted
        record.

        :param fresh: whether the object is written anew
        :raises NotFound: when the object does not exist
        :raises Forbidden: when ``identity`` may not read a source
        :raises CallerError: when the motifs cannot be attached
        """
        view = ItemView(name, Plain("", 0, "")) if fresh else find_item(self.shim, name, "object")
        for one in wanted:
            try:
                motif = self.runtime.create_motif(str(one.get("template")), one.get("params") or {}, identity)
                self.check_rights(name, [motif])
                if motif not in view.record.motifs:
                    view = replace(view, record=self.runtime.attachment(view, motif))
            except NotFound as error:
                raise CallerError(f"{error}") from error  # the missing item is a source, not the object
        self.note(view)
        text = view.record.encode()
        if fresh:
            return text
        posted: str = view.opaque.posted_motif(text)
        return posted

    def check_rights(self, name: str, motifs: Iterable[Motif]) -> None:
        """
        :raises Forbidden: when the identity of a motif may not read a source of it now
        :raises CallerError: for a source that is no object, or, of a preserving motif, is in another account
        """
        for motif in motifs:
            kind = self.templates.get(motif.template)
            for one in sources_of(motif, name, self.templates):
                if one.external or one.owned:
                    continue
                source, target = one.name, target_of(one.name)
                if target is None or "\0" in source or is_copy(source):
                    raise CallerError(f"source `{source}` is no object, expected account/container/object")
                if kind is not None and kind.relation == PRESERVING and target[0] != name.partition("/")[0]:
                    raise CallerError(f"source `{source}` of `{motif.template}` is in another account than `{name}`")
                if not may_read(motif.identity, target[0], partial(self.containers.read_acl, *target[:2])):
                    raise Forbidden(f"you may not read source `{source}`, which is in another account")

    def admit(self, name: str, motif: Motif) -> None:
        """Check and note a motif before it is attached.

        :raises CallerError: when it must not be attached
        """
        self.check_rights(name, [motif])
        self.note(ItemView(name, Plain("", 0, ""), Record((motif,))))

    def note(self, view: ItemView) -> None:
        """Add the object to the index before it is written."""
        self.index.add(view.name, view.record)

    def copied(self, view: ItemView, to: str, identity: str) -> Record:
        """The record of a copy, whose motifs are attached by the identity that copies.

        :raises Forbidden: when ``identity`` may not read a source
        :raises Conflict: when the copy may not have motifs
        """
        # a copy with its bytes has no reference to a hidden copy
        record = view.record if view.contracted else without_copies(view.record, view.name, self.templates)
        motifs = tuple(replace(one, identity=identity) for one in record.motifs)
        account, container, _ = to.split("/", 2)
        if not motifs:
            raise Conflict(f"`{view.name}` has no motifs")
        if self.containers.is_synchronized(account, container):
            raise Conflict(f"the container of `{to}` is synchronized to another")
        kinds = [self.templates[one.template] for one in motifs if one.template in self.templates]
        preserving = any(kind.relation == PRESERVING for kind in kinds)
        if preserving and any(to in internal_sources(one, to, self.templates) for one in motifs):
            raise Conflict(f"`{to}` would be made from itself")
        self.check_rights(to, motifs)
        return Record(motifs, record.made_from)
