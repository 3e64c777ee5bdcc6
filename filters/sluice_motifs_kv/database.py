"""LevelDB with elastic values: the interface of ``plyvel.DB``, and motifs.

    with Database("graph", templates=[ShortestPaths], limit=10 << 20) as database:
        database.put(b"edges", edges)
        paths = database.get_or_make(b"paths from 7", Motif("shortest_paths", {"vertex": 7}))

A value with a motif counts against the limit, and may give up its bytes; whoever reads it has them made again.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, Unpack

from sluice_core.errors import CallerError, NotFound
from sluice_motifs.api import Template
from sluice_motifs.contraction import HEAD
from sluice_motifs.dependencies.freshness import Freshness, internal_sources
from sluice_motifs.expansion.calls import Call, pieces_of
from sluice_motifs.records import MOST_MOTIFS, ItemView, Motif, Plain, Record
from sluice_motifs_kv.batch import Write, WriteBatch
from sluice_motifs_kv.elasticity import Elasticity
from sluice_motifs_kv.entries import Entry, item_key, item_name
from sluice_motifs_kv.shim import DatabaseShim, plain_of
from sluice_motifs_kv.snapshot import Bounds, Snapshot
from sluice_motifs_kv.space import Space, SpaceStatistics
from sluice_motifs_kv.store import Change, Store


class Database:
    """One database; :meth:`open` and :meth:`close` it. All other methods may be called from any thread.

    :param templates: classes that motifs may name
    :param limit: bytes of values with motifs; None for no limit
    :param policy: which of them go first: the keyword of a replacement policy
    :param options: of ``plyvel.DB``; a database that is missing is created
    :raises CallerError: when a keyword is taken twice or unknown, or the limit is negative
    """

    def __init__(
        self,
        path: Path | str,
        templates: Sequence[type[Template]] = (),
        limit: int | None = None,
        policy: str = "lru",
        **options: Any,
    ) -> None:
        self._templates = _by_keyword(templates)
        self._space = Space(limit, policy)
        self._store = Store(Path(path), options, self._space.committed)
        self._shim = DatabaseShim(self._store, self._templates, self._space.fits, self._space.opened)
        self._freshness = Freshness(self._shim, self._templates)
        self._elasticity = Elasticity(self._space, self._shim, self._templates)

    def open(self) -> Self:
        """
        :raises PeerError: when it cannot be opened, or another process has it
        """
        self._store.open()
        for view in self._shim.scan():
            self._space.add(item_key(view.name), view.plain.size, view.contracted)
        self._elasticity.enforce()
        self._elasticity.start()
        return self

    def close(self) -> None:
        """Finish the expansion in the background that is under way, and let other processes open it."""
        self._elasticity.stop()
        self._store.close()

    def get(self, key: bytes, default: Any = None) -> Any:
        """The value of a key, made again where its bytes are gone or out of date; else ``default``.

        :raises ExpansionError: when its bytes cannot be made
        :raises PeerError: when the database cannot be read, or the key's metadata are damaged
        """
        value = self._shim.get(key)
        self._elasticity.enforce()
        return default if value is None else value

    def put(self, key: bytes, value: bytes, sync: bool = False) -> None:
        """Write a value; motifs of the one before are detached.

        :param sync: return when it is on the disk; else it survives the process, and not the machine
        """
        self._write([(key, value)], sync)

    def delete(self, key: bytes, sync: bool = False) -> None:
        """Delete a key with its motifs, if there is one."""
        self._write([(key, None)], sync)

    def write_batch(self, transaction: bool = False, sync: bool = False) -> WriteBatch:
        """Writes that are made together; ``transaction``: none of them when an exception ends the ``with`` block."""
        return WriteBatch(lambda writes: self._write(writes, sync), transaction)

    def snapshot(self) -> Snapshot:
        """The database as it is now, whatever is written or contracted later."""
        return Snapshot(self._store.snapshot(), self._templates)

    def iterator(
        self, *, include_key: bool = True, include_value: bool = True, **bounds: Unpack[Bounds]
    ) -> Iterator[Any]:
        """As :meth:`Snapshot.iterator` of a snapshot that is taken now."""
        return self.snapshot().iterator(include_key=include_key, include_value=include_value, **bounds)

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self.iterator()

    def get_or_make(self, key: bytes, motif: Motif) -> bytes:
        """The value of a key; one that does not exist is made by the motif, which is attached to it.

        :raises NotFound: when there is no such template
        :raises ExpansionError: when the value cannot be made
        """
        name = item_name(key)
        template = self._template(motif)
        while (value := self._shim.get(key)) is None:
            value = self._make(name, template, motif)
            if value is not None:
                self._space.opened(key, made=True)
                break
        self._elasticity.enforce()
        return value

    def attach(self, key: bytes, motif: Motif) -> None:
        """Attach a motif to a value, which from now on counts as made from its sources as they are now.

        :raises NotFound: when there is no such template, or no such key
        :raises CallerError: when the value has the motif already, or more motifs than a value holds
        """
        name = item_name(key)
        self._template(motif)
        while not self._add(self._find(name), motif):
            pass
        self._elasticity.enforce()

    def detach(self, key: bytes, template: str) -> None:
        """Detach the motifs of a template from a value, whose bytes are made before where they are gone.

        :raises NotFound: when there is no such key, or it has no such motif
        :raises ExpansionError: when its bytes cannot be made
        """
        name = item_name(key)
        while True:
            seen = self._find(name)
            motifs = tuple(one for one in seen.record.motifs if one.template != template)
            if motifs == seen.record.motifs:
                raise NotFound(f"key `{name}` has no motif of template `{template}`")
            value = self._shim.get(key)
            if value is None:
                raise NotFound(f"there is no key `{name}`")
            seen = self._find(name)
            plain = plain_of(seen.plain.version, value)
            if plain == seen.plain and self._shim.swap(name, seen, Record(motifs, seen.record.made_from), plain, value):
                return

    def contract(self, key: bytes, verify: str = HEAD) -> str:
        """Give up the bytes of a value with motifs, whatever the limit is; says what became of it.

        :param verify: what is proven before, as of ``Contractor.contract``
        :raises NotFound: when there is no such key
        :raises NotContractible: when its bytes must stay, and why
        """
        return self._elasticity.contract(item_name(key), verify)

    def motifs(self, key: bytes) -> Sequence[Motif]:
        """The motifs of a value.

        :raises NotFound: when there is no such key
        """
        return self._find(item_name(key)).record.motifs

    def contracted(self, key: bytes) -> bool:
        """Whether the bytes of a value are gone.

        :raises NotFound: when there is no such key
        """
        return self._find(item_name(key)).contracted

    def set_limit(self, limit: int | None) -> None:
        """Give up, or make in the background, as many bytes as a new limit says.

        :raises CallerError: when it is negative
        """
        self._space.set_limit(limit)
        self._elasticity.enforce()

    def statistics(self) -> SpaceStatistics:
        """What values with motifs take, and what reading them took."""
        return self._space.statistics()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, writes: Sequence[Write], sync: bool) -> None:
        entries = (None if value is None else Entry(self._store.new_version(), len(value)) for _, value in writes)
        self._store.write(
            [Change(key, entry, value) for (key, value), entry in zip(writes, entries, strict=True)], sync
        )

    def _find(self, name: str) -> ItemView:
        view = self._shim.view(name)
        if view is None:
            raise NotFound(f"there is no key `{name}`")
        return view

    def _template(self, motif: Motif) -> Template:
        template = self._templates.get(motif.template)
        if template is None:
            near = difflib.get_close_matches(motif.template, self._templates, 1)
            hint = f", did you mean `{near[0]}`" if near else ""
            raise NotFound(f"unknown template `{motif.template}`{hint}")
        return template(motif.params)

    def _add(self, seen: ItemView, motif: Motif) -> bool:
        """Attach a motif to a value; False when it was written or contracted meanwhile."""
        if motif in seen.record.motifs:
            raise CallerError(f"key `{seen.name}` has this motif of template `{motif.template}` already")
        motifs = (*seen.record.motifs, motif)
        if len(motifs) > MOST_MOTIFS:
            raise CallerError(f"key `{seen.name}` has {MOST_MOTIFS} motifs, and may not have more")
        now = self._freshness.look(replace(seen, record=Record((motif,))))
        made_from = {**now.versions, **seen.record.made_from}
        value = self._shim.value(seen)
        if value is None and not seen.contracted:
            return False
        plain = seen.plain if value is None else plain_of(seen.plain.version, value)
        return self._shim.swap(seen.name, seen, Record(motifs, made_from), plain, value)

    def _make(self, name: str, template: Template, motif: Motif) -> bytes | None:
        """Make a value that does not exist; None when somebody wrote it meanwhile."""
        new = ItemView(name, Plain(self._shim.now(), 0, ""), Record((motif,)))
        for source in internal_sources(motif, name, self._templates):
            for _ in self._shim.read(source, motif.identity, (name,)):  # one that is out of date gets its version
                pass
        made_from = self._freshness.look(new).versions
        value = b"".join(pieces_of(template, Call(self._shim, new, template, motif, ()), motif))
        kept = value if self._space.fits(len(value)) else None
        plain = plain_of(new.plain.version, value)
        return value if self._shim.swap(name, None, Record((motif,), made_from), plain, kept) else None


def _by_keyword(templates: Sequence[type[Template]]) -> Mapping[str, type[Template]]:
    found: dict[str, type[Template]] = {}
    for template in templates:
        keyword = template.info.keyword
        if keyword in found:
            raise CallerError(f"two templates are called `{keyword}`, expected one of each name")
        found[keyword] = template
    return found
