"""Hit rates and byte miss rates of the replacement policies, on traces of three localities.

An open is a hit when its item is expanded.  The first open of an item makes it, so it is neither hit nor miss.  A miss
expands the item, and victims are contracted until all expanded items fit in a share of the trace's bytes; an item
larger than that is contracted again at once.

The rate of an ideal policy is given beside it: *clairvoyant* contracts the item that is opened last of all (MIN,
Belady 1966), which no policy can know.  It is the best one for items of one size, and a good one for others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from heapq import heappop, heappush
from typing import Final

from benchmarks.harness.figures import Figure, at_least, reported
from benchmarks.harness.scale import Scale, say
from benchmarks.motifs.traces import Locality, Trace, make_trace

from sluice_motifs.replacement.api import ReplacementPolicy
from sluice_motifs.replacement.lru import Lru
from sluice_motifs.replacement.random import RandomReplacement
from sluice_motifs.replacement.registry import BUILT_IN

STRONG: Final = Locality("strong", repeats=0.99)
LOCALITIES: Final = (STRONG, Locality("medium", repeats=0.9), Locality("none", repeats=0.0))
#: Percent of the bytes of a trace.
PERCENTS: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
REPORTED: Final = (20.0, 50.0)
#: The paper's percentage of hits, with LRU.
TARGET: Final = 99.5
#: Takes the place of a policy.
CLAIRVOYANT: Final = "clairvoyant"
_SEED: Final = 1


@dataclass(slots=True)
class Replay:
    """The result of a policy on a trace."""

    opens: int = 0
    hits: int = 0
    opened_bytes: int = 0
    missed_bytes: int = 0

    @property
    def hit_percent(self) -> float:
        return 100 * self.hits / self.opens

    @property
    def byte_miss_percent(self) -> float:
        return 100 * self.missed_bytes / self.opened_bytes


def measure(scale: Scale) -> list[Figure]:
    """Six policies and the clairvoyant one, three localities, ten sizes."""
    opens = scale.pick(500_000, 20_000)
    figures = []
    for locality in LOCALITIES:
        say(f"motif_replacement: {opens} opens, locality {locality.name}")
        trace = make_trace(locality, opens, _SEED)
        replays = {policy.keyword: _replays(policy, trace) for policy in BUILT_IN}
        capacities = {percent: int(sum(trace.sizes) * percent / 100) for percent in PERCENTS}
        replays[CLAIRVOYANT] = {percent: replay_clairvoyant(trace, most) for percent, most in capacities.items()}
        details = {"opens": opens, "seed": _SEED, "bytes": sum(trace.sizes), "locality": asdict(locality)}
        figures += [_hit_rate(locality, replays, percent, details) for percent in REPORTED]
        figures.append(_byte_misses(locality, replays, details))
    return figures


def replay(trace: Trace, policy: ReplacementPolicy, capacity: int) -> Replay:
    """Open everything in ``trace`` while expanded items may have ``capacity`` bytes."""
    made = bytearray(len(trace.sizes))
    used = 0
    found = Replay()
    for slot in trace.opens:
        size = trace.sizes[slot]
        if made[slot]:
            found.opens += 1
            found.opened_bytes += size
        if slot in policy:
            found.hits += 1
            policy.touch(slot)
            continue
        if made[slot]:
            found.missed_bytes += size
        made[slot] = 1
        if size > capacity:
            continue
        used += size
        for victim in policy.victims():
            if used <= capacity:
                break
            policy.evict(victim)
            used -= trace.sizes[victim]
        policy.insert(slot)
    return found


def replay_clairvoyant(trace: Trace, capacity: int) -> Replay:
    """The same with knowledge of the future: the victim is the item whose next open is the furthest."""
    never = len(trace.opens)
    following = [never] * never
    latest: dict[int, int] = {}
    for place in range(never - 1, -1, -1):
        slot = trace.opens[place]
        following[place] = latest.get(slot, never)
        latest[slot] = place
    found = Replay()
    made: set[int] = set()
    expanded: dict[int, int] = {}  # slots, and their next opens
    furthest: list[tuple[int, int]] = []  # the same, negative, as a heap that keeps past entries
    used = 0
    for place, slot in enumerate(trace.opens):
        size = trace.sizes[slot]
        hit = slot in expanded
        if slot in made:
            found.opens += 1
            found.hits += hit
            found.opened_bytes += size
            found.missed_bytes += 0 if hit else size
        made.add(slot)
        used += 0 if hit else size
        expanded[slot] = following[place]
        heappush(furthest, (-following[place], slot))
        while used > capacity:
            when, victim = heappop(furthest)
            if expanded.get(victim) == -when:
                del expanded[victim]
                used -= trace.sizes[victim]
    return found


def _replays(kind: type[ReplacementPolicy], trace: Trace) -> dict[float, Replay]:
    """By percent of the trace's bytes."""
    total = sum(trace.sizes)
    found = {}
    for percent in PERCENTS:
        policy = RandomReplacement(_SEED) if kind is RandomReplacement else kind()
        found[percent] = replay(trace, policy, int(total * percent / 100))
    return found


def _hit_rate(
    locality: Locality, replays: Mapping[str, Mapping[float, Replay]], percent: float, details: Mapping[str, object]
) -> Figure:
    rates = {name: found[percent].hit_percent for name, found in replays.items()}
    what = f"{_described(locality)}; {percent:g} % of the bytes: hits of LRU"
    beside = ", ".join(f"{name} {rate:.2f}" for name, rate in rates.items() if name != Lru.keyword)
    facts = {**details, "percent": percent, "hits": rates}
    if locality is STRONG:
        return at_least("motif hit rate", what, rates[Lru.keyword], TARGET, "%", beside, digits=2, **facts)
    return reported("motif hit rate", what, rates[Lru.keyword], "%", beside, digits=2, **facts)


def _byte_misses(
    locality: Locality, replays: Mapping[str, Mapping[float, Replay]], details: Mapping[str, object]
) -> Figure:
    curves = {name: [one.byte_miss_percent for one in found.values()] for name, found in replays.items()}
    beside = ", ".join(f"{percent:g}: {rate:.2f}" for percent, rate in zip(PERCENTS, curves[Lru.keyword], strict=True))
    return reported(
        "motif byte misses",
        f"{_described(locality)}; 0.1 to 100 % of the bytes: byte misses of LRU at 1 %",
        curves[Lru.keyword][PERCENTS.index(1.0)],
        "%",
        f"LRU by percent of the bytes: {beside}",
        digits=2,
        **details,
        percents=PERCENTS,
        byte_misses=curves,
    )


def _described(locality: Locality) -> str:
    repeats = f"{100 * locality.repeats:g} % of opens repeat one of about the last {locality.distance}"
    return f"{repeats}, others Zipf {locality.zipf:g}"
