"""The contract suite of shims: the assumptions of the runtime, as tests.

Subclass and define how a client of your storage writes; pytest finds the rest::

    class TestMyShim(ShimContract):
        @pytest.fixture
        def storage(self, tmp_path):
            return MyStorage(tmp_path, templates=[ShiftedCopy])  # implements ShimStorage
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final, Protocol

import pytest

from sluice_core.describe import MOTIF, ActionInfo, Parameter
from sluice_motifs.api import COPY, TIER, ExpansionError, Source, SourceGone, Template, TemplateCall
from sluice_motifs.storage.records import ItemView, Motif, Plain, Record
from sluice_motifs.storage.shim import Shim, SweptCopies

#: Contents of items: none, short, of all bytes, and longer than one read of a stream.
CONTENTS: Final = (b"", b"x", bytes(range(256)) * 5, b"0123456789abcdef" * 40_000)
NAMES: Final = ("plain", "with space/and slash", "ünïcode-☃", "x" * 150)


class ShimStorage(Protocol):
    """A storage as its clients use it, below the runtime."""

    @property
    def shim(self) -> Shim:
        """Its shim, for whose expansions the templates of the suite are installed."""

    def put(self, name: str, content: bytes) -> None:
        """Write an item as a client does; it has no motifs then."""

    def delete(self, name: str) -> None:
        """Delete an item as a client does."""

    def attach(self, name: str, record: Record) -> None:
        """Store a record with an existing item, without any other change."""


class ShiftedCopy(Template):
    """Makes the bytes of its source, each greater by one; the storage under test must have this template."""

    info: ClassVar[ActionInfo] = ActionInfo(
        "shifted_copy", MOTIF, "each byte greater by one", (Parameter("of", "str", "source"),)
    )

    def sources(self, item: str) -> Sequence[Source]:
        return [Source(str(self.params["of"]))]

    def expand(self, call: TemplateCall) -> Iterator[bytes]:
        for piece in call.read(str(self.params["of"])):
            yield shifted(piece)


def shifted(content: bytes) -> bytes:
    """The bytes that :class:`ShiftedCopy` makes."""
    return bytes((one + 1) % 256 for one in content)


class ShimContract:
    """Every rule of ``sluice_motifs.storage.shim.Shim``.

    ``placement`` is a place in which the storage keeps copies, as of ``TemplateCall.keep_copy``; None without copies.
    Storages that remove copies while they are used pass :class:`SweptCopiesContract`, too.
    """

    placement: ClassVar[str | None] = None

    @pytest.fixture
    def storage(self) -> ShimStorage:
        """The storage under test, empty."""
        raise NotImplementedError("override the fixture `storage`")

    @pytest.fixture
    def shim(self, storage: ShimStorage) -> Shim:
        return storage.shim

    def test_nothing_is_there_before_it_is_written(self, shim: Shim) -> None:
        assert shim.view("item") is None
        assert list(shim.scan()) == []
        with pytest.raises(SourceGone):
            list(shim.read("item", "", ()))

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("content", CONTENTS)
    def test_an_item_is_seen_as_it_was_written(
        self, storage: ShimStorage, shim: Shim, name: str, content: bytes
    ) -> None:
        seen = attached(storage, name, content)
        assert (seen.name, seen.plain.size, seen.contracted, seen.record) == (name, len(content), False, RECORD)
        assert b"".join(shim.own_bytes(seen)) == content
        assert b"".join(shim.read(name, "", ())) == content

    def test_items_are_seen_together_as_one_by_one(self, storage: ShimStorage, shim: Shim) -> None:
        for number in range(20):
            storage.put(f"item{number}", b"%d" % number)
        names = [f"item{number}" for number in reversed(range(25))]
        assert list(shim.view_all(names)) == [shim.view(name) for name in names]
        assert list(shim.view_all([])) == []

    def test_a_copy_is_named_by_its_bytes(self, storage: ShimStorage, shim: Shim) -> None:
        seen, copies = attached(storage, "item", b"one"), shim.copies
        if self.placement is None:
            with pytest.raises(ExpansionError, match="keeps no copies"):
                copies.name("item", "", SHA256)
            assert copies.find("copy") is None
            return
        name = copies.name("item", self.placement, SHA256)
        assert name == copies.name("item", self.placement, SHA256) != copies.name("item", self.placement, SHA256[::-1])
        assert copies.find(name) is None
        with pytest.raises(ExpansionError):
            copies.store(name, seen, ONE, _failing())
        assert copies.find(name) is None
        copies.store(name, seen, ONE, iter([b"o", b"ne"]))
        first = copies.find(name)
        assert first is not None
        assert b"".join(copies.read(name)) == b"one"
        assert found(shim, name).plain.size == 3
        copies.store(name, seen, ONE, iter([b"one"]))
        again = copies.find(name)
        assert again is not None
        assert again.version != first.version
        assert {one.name for one in shim.scan()} == {"item"}

    def test_a_copy_that_is_not_there_cannot_be_read(self, shim: Shim) -> None:
        name = "copy" if self.placement is None else shim.copies.name("item", self.placement, SHA256)
        with pytest.raises(SourceGone):
            list(shim.copies.read(name))

    def test_each_write_of_a_client_gives_another_version(self, storage: ShimStorage, shim: Shim) -> None:
        versions = set()
        for content in (b"one", b"two", b"two"):
            storage.put("item", content)
            versions.add(found(shim, "item").plain.version)
        storage.delete("item")
        storage.put("item", b"two")
        versions.add(found(shim, "item").plain.version)
        assert len(versions) == 4

    def test_a_write_of_a_client_detaches_motifs(self, storage: ShimStorage, shim: Shim) -> None:
        attached(storage, "item", b"one")
        storage.put("item", b"two")
        assert found(shim, "item").record == Record()

    @pytest.mark.parametrize("content", CONTENTS)
    def test_an_item_keeps_what_clients_see_through_contraction_and_expansion(
        self, storage: ShimStorage, shim: Shim, content: bytes
    ) -> None:
        seen = attached(storage, "item", content)
        later = Record(RECORD.motifs, {"source": "7"})
        assert shim.contract(seen, later)
        contracted = found(shim, "item")
        assert contracted.contracted
        assert (contracted.plain, contracted.record) == (seen.plain, later)
        assert shim.expand(contracted, RECORD, pieces_of(content))
        expanded = found(shim, "item")
        assert (expanded.contracted, expanded.plain, expanded.record) == (False, seen.plain, RECORD)
        assert b"".join(shim.own_bytes(expanded)) == content

    @pytest.mark.parametrize("contracted", [False, True], ids=["expanded", "contracted"])
    def test_another_record_changes_nothing_else(self, storage: ShimStorage, shim: Shim, contracted: bool) -> None:
        seen = attached(storage, "item", b"one", contracted)
        later = Record((*RECORD.motifs, Motif("other", {"of": "source"})), {"source": "7"})
        assert shim.annotate(seen, later)
        now = found(shim, "item")
        assert (now.plain, now.contracted, now.record) == (seen.plain, contracted, later)
        if not contracted:
            assert b"".join(shim.own_bytes(now)) == b"one"

    def test_a_scan_finds_what_has_motifs(self, storage: ShimStorage, shim: Shim) -> None:
        storage.put("plain", b"one")
        attached(storage, "expanded", b"two")
        attached(storage, "contracted", b"three", contracted=True)
        scanned = {seen.name: (seen.record, seen.contracted, seen.plain.size) for seen in shim.scan()}
        assert scanned == {"expanded": (RECORD, False, 3), "contracted": (RECORD, True, 5)}

    def test_bytes_are_those_of_what_was_seen_or_none(self, storage: ShimStorage, shim: Shim) -> None:
        seen = attached(storage, "item", b"one")
        storage.put("item", b"two")
        with pytest.raises(ExpansionError):
            list(shim.own_bytes(seen))

    @pytest.mark.parametrize("gone", [False, True], ids=["written", "deleted"])
    @pytest.mark.parametrize("change", ["annotate", "contract", "expand", "replace"])
    def test_a_client_wins_against_what_was_judged_before(
        self, storage: ShimStorage, shim: Shim, change: str, gone: bool
    ) -> None:
        seen = attached(storage, "item", b"one", contracted=change in ("expand", "replace"))
        if gone:
            storage.delete("item")
        else:
            storage.put("item", b"a client's")
        before = shim.view("item")
        assert not write(shim, change, seen, pieces_of(b"one"))
        assert shim.view("item") == before
        if not gone:
            assert b"".join(shim.read("item", "", ())) == b"a client's"

    @pytest.mark.parametrize("contracted", [False, True], ids=["stale", "contracted"])
    @pytest.mark.parametrize("content", CONTENTS)
    def test_new_content_has_its_own_size_and_digest(
        self, storage: ShimStorage, shim: Shim, contracted: bool, content: bytes
    ) -> None:
        seen = attached(storage, "item", b"what it was", contracted)
        assert shim.replace(seen, RECORD, pieces_of(content))
        now = found(shim, "item")
        assert (now.contracted, now.plain.size, now.record) == (False, len(content), RECORD)
        assert now.plain.version != seen.plain.version
        assert now.plain.digest != seen.plain.digest
        assert b"".join(shim.own_bytes(now)) == content

    def test_new_content_keeps_its_version_until_there_is_other(self, storage: ShimStorage, shim: Shim) -> None:
        versions = [attached(storage, "item", b"one").plain.version]
        for content in (b"two", b"two", b"three"):
            assert shim.replace(found(shim, "item"), RECORD, pieces_of(content))
            made = found(shim, "item")
            assert shim.contract(made, RECORD)
            assert found(shim, "item").plain == made.plain
            assert shim.expand(found(shim, "item"), RECORD, pieces_of(content))
            assert found(shim, "item").plain == made.plain
            versions.append(made.plain.version)
        assert len(set(versions)) == len(versions)
        storage.put("item", b"three")
        assert found(shim, "item").plain.version not in versions

    @pytest.mark.parametrize("change", ["expand", "replace"])
    def test_nothing_is_stored_of_bytes_that_end_in_an_error(
        self, storage: ShimStorage, shim: Shim, change: str
    ) -> None:
        def broken() -> Iterator[bytes]:
            yield b"half"
            raise ExpansionError("the source is away")

        seen = attached(storage, "item", b"half a content", contracted=True)
        with pytest.raises(ExpansionError, match="the source is away"):
            write(shim, change, seen, broken())
        assert shim.view("item") == seen

    def test_each_of_two_writers_that_judged_the_same_leaves_an_item_whole(
        self, storage: ShimStorage, shim: Shim
    ) -> None:
        seen = attached(storage, "item", b"one", contracted=True)
        assert shim.expand(seen, RECORD, pieces_of(b"one"))
        shim.replace(seen, RECORD, pieces_of(b"other"))
        now = found(shim, "item")
        assert b"".join(shim.own_bytes(now)) == (b"one" if now.plain == seen.plain else b"other")

    def test_new_content_wins_against_who_stores_the_old_bytes_again(self, storage: ShimStorage, shim: Shim) -> None:
        seen = attached(storage, "item", b"one", contracted=True)
        assert shim.replace(seen, RECORD, pieces_of(b"other"))
        assert not shim.expand(seen, RECORD, pieces_of(b"one"))
        assert b"".join(shim.own_bytes(found(shim, "item"))) == b"other"

    def test_the_front_door_expands(self, storage: ShimStorage, shim: Shim) -> None:
        storage.put("source", b"abc")
        seen = attached(storage, "item", b"bcd", contracted=True)
        assert b"".join(shim.read("item", "", ())) == b"bcd"
        assert found(shim, "item").plain == seen.plain


class SweptCopiesContract:
    """Every rule of ``sluice_motifs.storage.shim.SweptCopies``, for a storage as of :class:`ShimContract`."""

    placement: ClassVar[str] = ""

    @pytest.fixture
    def storage(self) -> ShimStorage:
        raise NotImplementedError("override the fixture `storage`")

    @pytest.fixture
    def copies(self, storage: ShimStorage) -> SweptCopies:
        copies: SweptCopies = storage.shim.copies  # type: ignore[assignment]
        return copies

    @pytest.fixture
    def copy(self, storage: ShimStorage, copies: SweptCopies) -> str:
        """The name of a copy of the item, which has a motif and its bytes."""
        name = copies.name("item", self.placement, SHA256)
        copies.store(name, attached(storage, "item", b"one"), ONE, iter([b"one"]))
        return name

    def test_copies_are_found_and_removed_as_they_were_seen(
        self, storage: ShimStorage, copies: SweptCopies, copy: str
    ) -> None:
        (seen,) = copies.scan()
        assert (seen.name, seen.age < 60) == (copy, True)
        copies.store(copy, found(storage.shim, "item"), ONE, iter([b"one"]))
        copies.delete(seen)
        assert b"".join(copies.read(copy)) == b"one"
        (seen,) = copies.scan()
        copies.delete(seen)
        copies.delete(seen)
        assert copies.find(copy) is None

    def test_references_are_those_that_were_added(self, storage: ShimStorage, copies: SweptCopies, copy: str) -> None:
        assert copies.references(copy) == []
        copies.refer(copy, "item", found(storage.shim, "item"))
        copies.refer(copy, "item", found(storage.shim, "item"))
        copies.refer(copy, "other name", None)
        references = sorted(copies.references(copy), key=lambda one: one.item)
        assert [(one.copy, one.item, one.age < 60) for one in references] == [
            (copy, "item", True),
            (copy, "other name", True),
        ]
        copies.drop(references[0])
        assert [one.item for one in copies.references(copy)] == ["other name"]

    def test_a_reference_that_was_added_again_is_not_dropped(
        self, storage: ShimStorage, copies: SweptCopies, copy: str
    ) -> None:
        item = found(storage.shim, "item")
        copies.refer(copy, "item", item)
        (before,) = copies.references(copy)
        copies.refer(copy, "item", item)
        copies.drop(before)
        assert len(copies.references(copy)) == 1

    @pytest.mark.parametrize(
        ("change", "outlived"),
        [("named", False), ("contracted", False), ("not named", True), ("written", True), ("deleted", True)],
    )
    def test_a_reference_is_outlived_when_the_item_does_not_name_the_copy(
        self, storage: ShimStorage, copies: SweptCopies, copy: str, change: str, outlived: bool
    ) -> None:
        shim, item = storage.shim, found(storage.shim, "item")
        copies.refer(copy, "item", item)
        kept = Record((Motif(TIER, {COPY: copy}),))
        if change == "named":
            assert shim.annotate(item, kept)
        elif change == "contracted":
            assert shim.contract(item, kept)
        elif change == "written":
            storage.put("item", b"later")
        elif change == "deleted":
            storage.delete("item")
        (reference,) = copies.references(copy)
        assert copies.outlived(reference) is outlived

    def test_a_reference_of_what_was_never_written_is_outlived(self, copies: SweptCopies, copy: str) -> None:
        copies.refer(copy, "never written", None)
        (reference,) = copies.references(copy)
        assert copies.outlived(reference)


#: The bytes of the suite's copies, and the digest that names them.
ONE: Final = Plain("", 3, hashlib.md5(b"one", usedforsecurity=False).hexdigest())
SHA256: Final = hashlib.sha256(b"one").hexdigest()
#: The motif of the suite.
RECORD: Final = Record((Motif("shifted_copy", {"of": "source"}),))


def attached(storage: ShimStorage, name: str, content: bytes, contracted: bool = False) -> ItemView:
    """An item with a motif, as its shim sees it."""
    storage.put(name, content)
    storage.attach(name, RECORD)
    seen = found(storage.shim, name)
    if contracted:
        assert storage.shim.contract(seen, RECORD)
        seen = found(storage.shim, name)
    return seen


def found(shim: Shim, name: str) -> ItemView:
    """An item that must exist."""
    view = shim.view(name)
    assert view is not None
    return view


def write(shim: Shim, change: str, seen: ItemView, pieces: Iterator[bytes]) -> bool:
    """One of the four writes of a shim."""
    if change == "annotate":
        return shim.annotate(seen, Record())
    if change == "contract":
        return shim.contract(seen, RECORD)
    if change == "expand":
        return shim.expand(seen, RECORD, pieces)
    return shim.replace(seen, RECORD, pieces)


def pieces_of(content: bytes) -> Iterator[bytes]:
    """A content in pieces of odd length."""
    return (content[start : start + 50_001] for start in range(0, len(content), 50_001))


def _failing() -> Iterator[bytes]:
    yield b"o"
    raise ExpansionError("the rest cannot be read")
