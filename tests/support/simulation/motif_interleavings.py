"""Clients and the runtime of motifs at the same few items, in random order, over a storage in memory.

    python -m tests.support.simulation.motif_interleavings 1000000

An *episode* creates some items and runs operations concurrently: each is a greenlet that yields at every
access to the storage and to leases. Invariants:

* A read returns the last write of a client, or a later one; or a motif's output for allowed states of its sources
  since the read began. It fails only if a client changed the item or its sources meanwhile, or deleted a source.
* Bytes that a client wrote to a preserving item can be made at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import logging
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import greenlet

from sluice_core.describe import MOTIF, ActionInfo, Parameter, Scalar
from sluice_core.errors import CallerError, NotFound, SluiceError
from sluice_motifs.api import COPY, PRESERVING, TIER, ExpansionError, Source, Template, TemplateCall
from sluice_motifs.contraction import contractor as contractor_module
from sluice_motifs.contraction.contractor import CONTRACTED, Contractor
from sluice_motifs.contraction.copies import CopySharing, CopySweeper
from sluice_motifs.contraction.outdated import OutdatedContractor
from sluice_motifs.contraction.preparation import EXPAND, HEAD, TRUST
from sluice_motifs.dependencies import attachment_checks
from sluice_motifs.dependencies.freshness import Freshness, sources_by_name
from sluice_motifs.expansion import shared_stream
from sluice_motifs.expansion.opening import ExpansionConfig, Observer, Openings
from sluice_motifs.storage.leases import HeldLeases, LocalLeases
from sluice_motifs.storage.records import ItemView, Motif, Plain, Record
from sluice_motifs.storage.shim import Lease, Leases, ViewedOnce
from sluice_motifs.testing.memory_shim import MemoryShim

#: Seconds of the simulated clock for each access.
TICK: Final = 0.02
#: Accesses by others during a PUT.
LASTING: Final = (0, 0, 3, 20)
#: Accesses after which an episode counts as stuck.
STUCK: Final = 200_000
#: Seconds for which unneeded copies stay.
GRACE: Final = 1000.0
#: The actions, and their frequencies.
OPERATIONS: Final = {
    "get": 30,
    "contract": 30,
    "put": 12,
    "renew": 8,
    "attach_late": 8,
    "delete": 4,
    "post": 6,
    "keep": 6,
    "rewrite": 8,
    "copy": 8,
    "tell": 8,
    "lie": 6,
    "forget": 4,
    "sweep": 10,
    "wait": 10,
}


class Violation(Exception):
    """An invariant was violated."""


class One(Template):
    """Makes an item from another one."""

    info = ActionInfo("one", MOTIF, "from one item", (Parameter("of", "str", "source"),))

    def sources(self, item: str) -> list[Source]:
        return [Source(one) for one in str(self.params["of"]).split(",")]

    def expand(self, call: TemplateCall) -> Iterator[bytes]:
        contents = [b"".join(call.read(one.name)) for one in self.sources(call.item)]
        made = self.make(*contents)
        for begin in range(0, len(made), 4):
            yield made[begin : begin + 4]

    @staticmethod
    def make(*contents: bytes) -> bytes:
        """The item, from its sources."""
        return contents[0].swapcase()

    @staticmethod
    def unmake(made: bytes) -> list[bytes] | None:
        """The sources, from the item; None when it has none."""
        return [made.swapcase()]


class Join(One):
    """Two items, one after the other."""

    info = ActionInfo("join", MOTIF, "from two items", (Parameter("of", "str", "sources"),))

    @staticmethod
    def make(*contents: bytes) -> bytes:
        return b"|".join(contents)

    @staticmethod
    def unmake(made: bytes) -> list[bytes] | None:
        return made.split(b"|") if made.count(b"|") == 1 else None


class Numbered(One):
    """Makes other bytes each time."""

    info = ActionInfo("numbered", MOTIF, "from one item", (Parameter("of", "str", "source"),))
    exact = False
    made = 0

    @staticmethod
    def make(*contents: bytes) -> bytes:
        Numbered.made += 1
        return contents[0] + b"#%d" % Numbered.made

    @staticmethod
    def unmake(made: bytes) -> list[bytes] | None:
        return [made.partition(b"#")[0]] if b"#" in made else None


class Kept(One):
    """A hidden copy of its bytes."""

    info = ActionInfo(TIER, MOTIF, "a hidden copy", (Parameter("of", "str", "none"),))
    relation = PRESERVING
    keeps_copy = True
    copy_is_item = True

    def sources(self, item: str) -> list[Source]:
        if COPY in self.params:
            return [Source(str(self.params[COPY]), owned=True)]
        return [Source(one) for one in str(self.params.get("of", "")).split(",") if one]

    def keep_copy(self, call: TemplateCall) -> dict[str, Scalar]:
        return {COPY: call.keep_copy()}

    def expand(self, call: TemplateCall) -> Iterator[bytes]:
        if COPY not in self.params:
            raise ExpansionError("no copy was made yet")
        yield self.make(b"".join(call.read(str(self.params[COPY]))))

    @staticmethod
    def make(*contents: bytes) -> bytes:
        return contents[0]

    @staticmethod
    def unmake(made: bytes) -> list[bytes] | None:
        return [made]


class Same(Kept):
    """The bytes of its source, which shares the copy."""

    info = ActionInfo("same", MOTIF, "the same bytes", (Parameter("of", "str", "source"),))

    def shares_copy_with(self) -> str:
        return str(self.params["of"])


class Unpacked(Same):
    """The other half of a circular pair with ``one``."""

    info = ActionInfo("unpacked", MOTIF, "its source's source", (Parameter("of", "str", "source"),))
    copy_is_item = False

    def keep_copy(self, call: TemplateCall) -> dict[str, Scalar]:
        own = b"".join(call.own_bytes())
        packed = self.make(own)
        with contextlib.suppress(ExpansionError):
            source = b"".join(call.read(str(self.params["of"])))
            if self.make(source) == own:
                packed = source
        return {COPY: call.keep_copy(pieces=iter([packed]))}

    @staticmethod
    def make(*contents: bytes) -> bytes:
        return One.make(*contents)

    @staticmethod
    def unmake(made: bytes) -> list[bytes] | None:
        return One.unmake(made)


_ALL: Final[tuple[type[One], ...]] = (One, Join, Numbered, Same, Unpacked, Kept)
TEMPLATES: Final[dict[str, type[One]]] = {one.info.keyword: one for one in _ALL}

#: Motifs of an episode's items, template and sources; an item without a motif is only written by clients.
Scene = dict[str, tuple[str, str]]
SCENES: Final[tuple[Scene, ...]] = (
    {"a": ("", ""), "b": ("", ""), "up": ("one", "a"), "both": ("join", "up,b")},
    {"a": ("", ""), "n": ("numbered", "a"), "up": ("one", "a"), "kept": ("same", "up")},
    {"p": ("unpacked", "z"), "z": ("one", "p"), "z2": ("one", "p")},
    {"s": ("", ""), "q": ("same", "s"), "r": ("same", "q"), "up": ("one", "q")},
    {"h": (TIER, ""), "up": ("one", "h"), "k": (TIER, "")},
    {"k": (TIER, ""), "l": (TIER, ""), "m": (TIER, "")},
)
#: In the last one, which is drawn most often, clients write one of so few contents: items share copies, also old
#: ones.
ALIKE: Final = 2


class Scheduler:
    """Runs greenlets in random order; ``switch`` yields."""

    def __init__(self, draws: random.Random) -> None:
        self._draws = draws
        self._hub = greenlet.getcurrent()
        self._tasks: list[greenlet.greenlet] = []
        self._closed = False
        self.steps = 0
        self.skipped = 0.0

    def close(self) -> None:
        """Stop the remaining greenlets after a violation."""
        self._closed = True
        for task in self._tasks:
            with contextlib.suppress(Violation, SluiceError):
                task.throw(greenlet.GreenletExit)

    def start(self, work: Callable[[], None]) -> None:
        self._tasks.append(greenlet.greenlet(work, self._hub))

    def switch(self, _: float = 0.0) -> None:
        self.steps += 1
        if self.steps > STUCK:
            raise Violation("the operations wait for each other")
        if greenlet.getcurrent() is not self._hub and not self._closed:
            self._hub.switch()

    def run(self) -> None:
        while self._tasks:
            number = int(self._draws.random() * len(self._tasks))
            task = self._tasks[number]
            task.switch()
            if task.dead:
                self._tasks[number] = self._tasks[-1]
                self._tasks.pop()

    def clock(self) -> float:
        return self.steps * TICK

    def wall_clock(self) -> float:
        """The clock of copies, with the skipped time."""
        return self.clock() + self.skipped


class _Condition:
    """Replaces ``threading.Condition`` among greenlets: a waiter yields and checks again."""

    switch: Callable[[], None]

    def __enter__(self) -> _Condition:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def notify_all(self) -> None:
        pass

    def wait(self, _: float) -> bool:
        type(self).switch()
        return True


class LosableLeases(LocalLeases):
    """Leases that are lost at times; none is granted before all granted ones have expired."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(clock=scheduler.clock)
        self._scheduler = scheduler
        self._closed_until = 0.0

    def lose(self) -> None:
        self._held.clear()
        self._closed_until = self._scheduler.clock() + self._lasts

    def acquire(self, item: str) -> Lease | None:
        self._scheduler.switch()
        return None if self._scheduler.clock() < self._closed_until else super().acquire(item)

    def renew(self, lease: Lease) -> bool:
        self._scheduler.switch()
        return super().renew(lease)


class _Held(HeldLeases):
    """Replaces ``HeldLeases`` in contractions: no long time passes after the last check of the leases."""

    committing = 0

    def __init__(self, leases: Leases, clock: Callable[[], float]) -> None:
        super().__init__(leases, clock)
        self._committing = False

    def renew(self) -> bool:
        if not self._committing:
            self._committing = True
            _Held.committing += 1
        return super().renew()

    def __exit__(self, *raised: Any) -> None:
        if self._committing:
            _Held.committing -= 1
        super().__exit__(*raised)


class SceneDerivations:
    """The derivations of an episode's items, until they are lost; implements ``Derivations``."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.lost = False

    def find(self, sources: Sequence[str]) -> list[list[str]]:
        if self.lost:
            return [[] for _ in sources]
        return [[item for item, (_, of) in self._scene.items() if source in of.split(",")] for source in sources]

    def remove(self, source: str, items: Sequence[str]) -> None:
        pass


@dataclass(slots=True)
class Write:
    """A change of an item: a client's content (``motif``: with its motif), or None for a DELETE.

    ``detached``: its motifs were detached, and its bytes stay.
    ``time``: the storage's, at a client's start.
    ``lie``: the motif does not make this content; how often each other item had been written by then.
    """

    content: bytes | None
    motif: bool = False
    detached: bool = False
    time: int = 0
    lie: dict[str, int] | None = None


@dataclass
class Episode(Observer):
    """Some items and the actions on them."""

    seed: int
    scene: Scene = field(init=False)
    history: dict[str, list[Write]] = field(default_factory=dict)
    failure: str = ""

    def __post_init__(self) -> None:
        self.draws = random.Random(self.seed)
        self.scheduler = Scheduler(self.draws)
        _Condition.switch = self.scheduler.switch
        self.scene = dict(self.draws.choice((*SCENES, SCENES[-1], SCENES[-1])))
        self.alike = self.scene == SCENES[-1]
        self.liars = self.draws.random() < 0.5
        self.shim = MemoryShim(self.front_door, self.scheduler.switch, self.draws, clock=self.scheduler.wall_clock)
        self.leases = LosableLeases(self.scheduler)
        config = ExpansionConfig(self.scheduler.start, self.scheduler.switch, self.scheduler.clock, observer=self)
        self.openings = Openings(self.shim, self.leases, TEMPLATES, config=config)
        self.contractor = Contractor(self.shim, self.leases, TEMPLATES, grace=GRACE, clock=self.scheduler.wall_clock)
        self.sharing = CopySharing(
            self.shim, TEMPLATES, self.attach_motif, self.contractor.contract, lambda motif, other: True
        )
        self.sweeper = CopySweeper(self.shim.copies, GRACE)
        self.derivations = SceneDerivations(self.scene)
        self.outdated = OutdatedContractor(
            self.shim, TEMPLATES, self.derivations, self.contractor.contract, self.scheduler.switch
        )
        self.writes = 0

    # Actions.

    def run(self) -> None:
        for name in self.scene:
            self.write(name)
        self.attach()
        for name in self.draws.sample(list(self.scene), 2):
            self.alone(lambda name=name: self.contract(name))
        if self.alike:
            for work in (self.wait, lambda: self.put("k"), lambda: self.delete("l"), self.wait, self.sweep):
                self.alone(work)
        for _ in range(self.draws.randint(2, 6)):
            self.scheduler.start(self.operation())
        self.scheduler.run()
        for name in list(self.scene):
            self.alone(lambda name=name: self.get(name))
        if self.failure:
            raise Violation(self.failure)

    def alone(self, work: Callable[[], object]) -> None:
        self.scheduler.start(lambda: self.attempt(work))
        self.scheduler.run()

    def operation(self) -> Callable[[], None]:
        name = self.draws.choice(list(self.scene))
        kind = self.draws.choices(tuple(OPERATIONS), tuple(OPERATIONS.values()))[0]
        if kind in ("forget", "sweep", "wait"):
            return lambda: self.attempt(getattr(self, kind))
        if kind == "lie" and not self.liars:
            kind = "put"
        return lambda: self.attempt(lambda: getattr(self, kind)(name))

    def attempt(self, work: Callable[[], object]) -> None:
        try:
            work()
        except (CallerError, ExpansionError):
            pass
        except Violation as error:
            self.failure = self.failure or f"{error}"
        self.check_kept()

    def put(self, name: str) -> None:
        self.write(name)

    def delete(self, name: str) -> None:
        self.shim.delete(name)
        self.history[name].append(Write(None, time=self.shim._time))

    def lie(self, name: str) -> None:
        """A client attaches a motif to bytes that it does not make."""
        keyword, of = self.scene[name]
        if not keyword:
            return
        sources = [one for one in of.split(",") if one]
        made_from = {source: self.view(source).plain.version for source in sources}
        written = {other: len(writes) for other, writes in self.history.items() if other != name}
        self.write(name, Record((Motif(keyword, {"of": of}),), made_from), written)

    def forget(self) -> None:
        """Redis loses all data."""
        self.derivations.lost = True
        self.leases.lose()

    def wait(self) -> None:
        """Skip enough time for copies to be removed; no PUT of the runtime takes as long."""
        while _Held.committing:
            self.scheduler.switch()
        self.scheduler.skipped += GRACE

    def sweep(self) -> None:
        self.sweeper.sweep()

    def attach_motif(self, name: str, motif: Motif) -> None:
        with HeldLeases(self.leases, self.scheduler.clock) as held:
            if held.acquire({name}):
                view = self.view(name)
                self.shim.annotate(view, Record((*view.record.motifs, motif), view.record.made_from))

    def post(self, name: str) -> None:
        self.shim.post(name, "posted")

    def keep(self, name: str) -> None:
        """A client attaches a motif that keeps a copy, by a POST."""
        self.shim.post(name, "kept", Motif(TIER, {"of": ""}))

    def rewrite(self, name: str) -> None:
        self.shim.rewrite(name)

    def contract(self, name: str) -> None:
        verify = self.draws.choice((HEAD, EXPAND) if self.liars else (TRUST, HEAD, EXPAND))
        if self.contractor.contract(name, verify) == CONTRACTED:
            self.sharing.share(name)

    def tell(self, name: str) -> None:
        """Report to the runtime that a client changed an item, which may be true."""
        self.outdated.contract([name])

    def copy(self, name: str) -> None:
        to = f"copy of {name}"
        if to in self.scene or name not in self.scene:
            return
        with self.contractor.copying(name, to) as seen:
            # a client may have written it since
            last = [one for one in self.history[name] if one.time <= seen.opaque.data.timestamp[0]][-1]
            self.shim.copy(seen, to)
            self.scene[to] = self.scene[name]
            self.history[to] = [last]

    def renew(self, name: str) -> None:
        """A client makes an item by itself, and attaches the motif to it."""
        keyword, of = self.scene[name]
        if not keyword:
            return
        if keyword == TIER:
            self.write(name, Record((Motif(keyword, {"of": of}),)))
            return
        views = [self.view(source) for source in of.split(",")]
        made_from = {view.name: view.plain.version for view in views}
        contents = [self.get(view.name) for view in views]
        made = TEMPLATES[keyword].make(*contents)
        self.upload(name, Write(made, motif=True), Record((Motif(keyword, {"of": of}),), made_from))

    def attach_late(self, name: str) -> None:
        """A client makes an item from bytes that it has read, and names their versions with the upload."""
        keyword, of = self.scene[name]
        if keyword not in TEMPLATES or TEMPLATES[keyword].relation == PRESERVING:
            return
        contents = [self.get(source) for source in of.split(",")]
        etags = tuple(hashlib.md5(one, usedforsecurity=False).hexdigest() for one in contents)
        motif = Motif(keyword, {"of": of}, versions=etags)
        views = ViewedOnce(self.shim)
        state = Freshness(views, TEMPLATES).check_sources(ItemView(name, Plain("", 0, ""), Record((motif,))))
        if state.gone:
            raise NotFound(f"source `{min(state.gone)}` does not exist")
        record = Record((motif,), attachment_checks.made_from(name, motif, state, views, TEMPLATES))
        self.upload(name, Write(TEMPLATES[keyword].make(*contents), motif=True), record)

    def write(self, name: str, record: Record | None = None, lie: dict[str, int] | None = None) -> None:
        self.writes += 1
        content = b"<%s.%d>" % (name.encode(), self.writes)
        if self.alike:
            content = b"<alike.%d>" % self.draws.randrange(ALIKE)
        self.upload(name, Write(content, motif=lie is not None, lie=lie), record)

    def upload(self, name: str, write: Write, record: Record | None) -> None:
        """A client's PUT, which lasts; only another client's later PUT wins against it."""
        version = self.shim.put(name, write.content or b"", record, accesses=self.draws.choice(LASTING))
        write.time = int(version)
        history = self.history.setdefault(name, [])
        if not history or history[-1].time < write.time:
            history.append(write)

    def attach(self) -> None:
        """Write to all items the bytes that their motifs make, and attach these."""
        for name, (keyword, of) in self.scene.items():
            if keyword not in ("", "unpacked", TIER):
                contents = [self.shim.stored(source) or b"" for source in of.split(",")]
                version = self.shim.put(name, made := TEMPLATES[keyword].make(*contents))
                self.history[name].append(Write(made, motif=True, time=int(version)))
        for name, (keyword, of) in self.scene.items():
            if keyword:
                versions = {source: self.view(source).plain.version for source in of.split(",") if source}
                self.shim.annotate(self.view(name), Record((Motif(keyword, {"of": of}),), versions))
                self.history[name][-1].motif = True

    # Reads.

    def front_door(self, name: str, chain: tuple[str, ...]) -> Iterator[bytes]:
        while True:
            needed = self.draws.random() < 0.5
            sources = self.sources(name) if needed else ()
            opened = self.openings.open(name, chain, needed=needed, sources=sources)
            try:
                if opened.expansion is not None:
                    yield from opened.read()
                    return
                pieces = self.shim.own_bytes(opened.view)
                first = next(pieces, b"")
            except ExpansionError:
                if opened.expansion is not None:
                    raise
                continue  # contracted or written since
            finally:
                opened.close()
            yield first
            yield from pieces
            return

    def sources(self, name: str) -> Sequence[str]:
        """The sources of an item as a proxy worker sees it, a moment before the bytes are requested."""
        view = self.shim.view(name)
        return () if view is None else sources_by_name(view.record.motifs, name, TEMPLATES)

    def expand(self, name: str) -> None:
        opened = self.openings.open(name)
        try:
            if opened.expansion is not None:
                for _ in opened.read():
                    pass
                while self.openings.active.join(name) is opened.expansion:
                    self.openings.active.leave(opened.expansion)
                    self.scheduler.switch()
        finally:
            opened.close()

    def get(self, name: str) -> bytes:
        begin = {one: len(writes) - 1 for one, writes in self.history.items()}
        try:
            content = b"".join(self.front_door(name, ()))
        except NotFound:
            if not any(one.content is None and not one.detached for one in self.since(name, begin)):
                raise Violation(f"`{name}` was lost") from None
            raise
        except ExpansionError as error:
            if not self.may_fail(name, begin, set()):
                raise Violation(f"`{name}` cannot be read: {error}") from error
            raise
        if not self.accepts(name, content, begin):
            raise Violation(f"`{name}` was read as {content!r}, which is old or foreign: {self.history}")
        return content

    # Invariants.

    def since(self, name: str, begin: dict[str, int]) -> list[Write]:
        return self.history[name][begin.get(name, 0) :]

    def accepts(self, name: str, content: bytes, begin: dict[str, int]) -> bool:
        keyword, of = self.scene[name]
        since = self.since(name, begin)
        preserving = not keyword or TEMPLATES[keyword].relation == PRESERVING
        if len(since) == 1 and since[0].lie is not None:
            written = since[0].lie
            sources = [source for source in of.split(",") if source]
            plain = TEMPLATES[keyword].exact and not any(self.scene[source][0] for source in sources)
            if plain and all(len(self.history[source]) == written[source] for source in sources):
                return content == since[0].content  # the motif makes other bytes, and was not used
        if any(one.content == content and (preserving or not one.motif or one.lie is not None) for one in since):
            return True
        if any(one.detached for one in since):
            return True
        if preserving or not any(one.motif for one in since):
            return False
        sources = of.split(",")
        if any(one.content is None for source in sources for one in self.since(source, begin) if not one.detached):
            return True  # its bytes may exist nowhere else
        parts = TEMPLATES[keyword].unmake(content)
        return parts is not None and all(map(self.accepts, sources, parts, [begin] * len(sources)))

    def may_fail(self, name: str, begin: dict[str, int], seen: set[str]) -> bool:
        """Whether a client changed the item or its sources since, or had deleted a source."""
        if name in seen:
            return False
        seen.add(name)
        since = self.since(name, begin)
        if len(since) > 1 or since[0].content is None:
            return True
        of = self.scene[name][1]
        return any(self.may_fail(source, begin, seen) for source in of.split(",") if source)

    def check_kept(self) -> None:
        """Clients' writes to preserving items can be made from the present storage."""
        for name, (keyword, _) in self.scene.items():
            if keyword in ("same", "unpacked", TIER):
                last = self.history[name][-1].content
                if last is not None and last not in self.made(name, frozenset()):
                    self.failure = self.failure or f"`{name}` was lost: {self.history}"

    def made(self, name: str, seen: frozenset[str]) -> set[bytes]:
        """The bytes of an item, or those that each of its motifs makes from the present storage."""
        state = self.shim._states.get(name)
        if state is None or state.data.plain is None or name in seen:
            return set()
        if state.data.content is not None:
            return {state.data.content}
        found = set()
        for motif in state.record.motifs:
            if COPY in motif.params:
                copies = self.made(str(motif.params[COPY]), seen | {name})
                found |= {TEMPLATES[motif.template].make(one) for one in copies}
                continue
            if TEMPLATES[motif.template].keeps_copy:
                continue  # no source counts
            contents = [self.made(source, seen | {name}) for source in str(motif.params["of"]).split(",")]
            found |= {TEMPLATES[motif.template].make(*one) for one in itertools.product(*contents)}
        return found

    def view(self, name: str) -> ItemView:
        view = self.shim.view(name)
        if view is None:
            raise NotFound(f"there is no item `{name}`")
        return view

    def detached(self, view: ItemView, motifs: tuple[Motif, ...], sources: frozenset[str]) -> None:
        last = self.history[view.name][-1]
        self.history[view.name].append(Write(last.content, detached=True, time=last.time))


def run(seed: int) -> None:
    """One episode.

    :raises Violation: when an invariant is violated
    """
    threading, shared_stream.threading = shared_stream.threading, _Threading  # type: ignore[assignment]
    held, _Held.committing = contractor_module.HeldLeases, 0
    if held is HeldLeases:
        contractor_module.HeldLeases = _Held  # type: ignore[misc]
    episode = Episode(seed)
    try:
        episode.run()
    except Violation as error:
        raise Violation(f"seed {seed}: {error}") from error
    finally:
        episode.scheduler.close()
        shared_stream.threading = threading
        contractor_module.HeldLeases = held  # type: ignore[misc]


class _Threading:
    Condition = _Condition


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    start = time.monotonic()
    for number in range(first, first + count):
        run(number)
        if number % 50_000 == 0:
            print(f"at seed {number} after {time.monotonic() - start:.0f} s", flush=True)
    print(f"{count} interleavings from seed {first} without a violation in {time.monotonic() - start:.0f} s")
