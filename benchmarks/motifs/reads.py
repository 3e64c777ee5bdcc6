"""GETs of contracted objects, beside GETs of their source and beside a client that makes the object by hand.

    python -m benchmarks --only motif_reads

Small objects: seconds to the first byte, of the object and of its source, one right after the other.  Large ones: the
whole GET, beside a client that reads the source and stores the object under another name while it reads.  Objects are
made by ``concat`` of one source, so that no filter's work is in the times.  Each round contracts the object again.

At last, what it costs to look at sources: GETs of an object that is there and derived from some, beside the same object
without a motif.
"""

from __future__ import annotations

import contextlib
import http.client
import random
import time
from collections.abc import Callable, Iterator
from typing import Final

from benchmarks.harness.figures import Figure, at_most, reported
from benchmarks.harness.pairs import quantile
from benchmarks.harness.scale import Scale, say

from sluice_aio.base.layout import Layout
from sluice_aio.base.setup import Setup
from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import DEFAULT
from sluice_aio.conf.common import USERS
from sluice_client import Client
from sluice_client.errors import ClientError
from sluice_core.errors import PeerError

SMALL: Final = {"10 KB": 10_000, "200 KB": 200_000}
LARGE: Final = {"20 MB": 20_000_000, "100 MB": 100_000_000}
#: Sources of an object with bytes, and its size.
SOURCES: Final = (1, 8)
DERIVED: Final = 200_000
#: Allowed delay of the first byte behind that of the source, and allowed additional time of a whole object.
LATER: Final = 0.025
LONGER: Final = 1.2
_USER: Final = "test:tester"
_ACCOUNT: Final = "AUTH_test"
_CONTAINER: Final = "reads"
_PIECE: Final = 1 << 16
_PATIENCE: Final = 60.0


def measure(scale: Scale) -> list[Figure]:
    """First bytes of small objects, whole large ones."""
    layout = Layout.free(scale.folder / "motif-reads")
    with (
        Cluster(layout, DEFAULT | {"motifs"}, setup=Setup()) as cluster,
        Client(cluster.api_url, cluster.token) as api,
        contextlib.closing(SwiftHttp(cluster.proxy_url).login(_USER, USERS[_USER][0])) as swift,
    ):
        found = []
        for text, size in SMALL.items():
            _fill(swift, text, size)
            found.append(_first_bytes(api, swift, text, scale.pick(60, 5)))
        for text, size in LARGE.items():
            _fill(swift, text, size)
            found.append(_whole(api, swift, text, size, scale.pick(12, 2)))
        return [*found, *(_derived(swift, count, scale.pick(60, 5)) for count in SOURCES)]


def _fill(swift: SwiftHttp, text: str, size: int) -> None:
    body = random.Random(size).randbytes(size)
    swift.request("PUT", _CONTAINER)
    source = f"{_CONTAINER}/source-{_name(text)}"
    motif = f"concat; of={_ACCOUNT}/{source}"
    for path, headers in ((source, {}), (f"{_CONTAINER}/{_name(text)}", {"x_object_motif": motif})):
        _until(lambda: swift.request("PUT", path, body, **headers).status == 201, path)  # noqa: B023


def _first_bytes(api: Client, swift: SwiftHttp, text: str, rounds: int) -> Figure:
    source: list[float] = []
    item: list[float] = []
    for number in range(rounds):
        _contract(api, text)
        turns: list[tuple[list[float], str]] = [(source, f"source-{_name(text)}"), (item, _name(text))]
        for times, name in turns if number % 2 else reversed(turns):
            times.append(_first_byte(swift, name))
    later = [mine - others for mine, others in zip(item, source, strict=True)]
    median = quantile(later, 0.5)
    say(f"motif_reads: {text}: {1000 * median:.1f} ms after the source")
    beside = (
        f"object {1000 * quantile(item, 0.5):.1f} ms, source {1000 * quantile(source, 0.5):.1f} ms; "
        f"nine of ten within {1000 * quantile(later, 0.9):.1f} ms"
    )
    row = f"GET of a contracted object of {text}: first byte after that of its source, median of {rounds}"
    return at_most("motif first byte", row, 1000 * median, 1000 * LATER, "ms", beside, 1)


def _whole(api: Client, swift: SwiftHttp, text: str, size: int, rounds: int) -> Figure:
    ratios: list[float] = []
    mine: list[float] = []
    others: list[float] = []
    for number in range(rounds):
        _contract(api, text)
        works: list[tuple[list[float], Callable[[], int]]] = [
            (mine, lambda: sum(len(piece) for piece in _pieces(swift, _name(text)))),
            (others, lambda: _by_hand(swift, text, size)),
        ]
        for times, work in works if number % 2 else reversed(works):
            began = time.perf_counter()
            if (read := work()) != size:
                raise PeerError(f"{text}: {read} bytes, expected {size}")
            times.append(time.perf_counter() - began)
        ratios.append(mine[-1] / others[-1])
    ratio = quantile(ratios, 0.5)
    say(f"motif_reads: {text}: {ratio:.2f} × by hand")
    beside = f"{quantile(mine, 0.5):.2f} s, by hand {quantile(others, 0.5):.2f} s; half of the rounds "
    beside += f"{quantile(ratios, 0.25):.2f}..{quantile(ratios, 0.75):.2f}"
    row = f"GET of a contracted object of {text} × reading the source and storing it by hand, median of {rounds}"
    return at_most("motif whole", row, ratio, LONGER, "×", beside, 2)


def _derived(swift: SwiftHttp, count: int, rounds: int) -> Figure:
    """GETs of an object with bytes, derived from so many sources, beside the same one without a motif."""
    part = random.Random(count).randbytes(DERIVED // count)
    names = [f"part-{count}-{number}" for number in range(count)]
    of = ",".join(f"{_ACCOUNT}/{_CONTAINER}/{name}" for name in names)
    for name in names:
        swift.request("PUT", f"{_CONTAINER}/{name}", part)
    swift.request("PUT", f"{_CONTAINER}/plain-{count}", part * count)
    if swift.request("PUT", f"{_CONTAINER}/of-{count}", part * count, x_object_motif=f"concat; of={of}").status != 201:
        raise PeerError(f"no object is made of {count} sources")
    plain: list[float] = []
    item: list[float] = []
    for number in range(rounds):
        turns: list[tuple[list[float], str]] = [(plain, f"plain-{count}"), (item, f"of-{count}")]
        for times, name in turns if number % 2 else reversed(turns):
            times.append(_first_byte(swift, name))
    later = 1000 * quantile([mine - others for mine, others in zip(item, plain, strict=True)], 0.5)
    say(f"motif_reads: derived from {count}: {later:.1f} ms later")
    row = f"GET of an object of 200 KB that is there and derived from {count}: first byte later than without a motif"
    beside = f"{1000 * quantile(item, 0.5):.1f} ms, without a motif {1000 * quantile(plain, 0.5):.1f} ms"
    return reported("motif derived", row, later, "ms", beside, 1)


def _contract(api: Client, text: str) -> None:
    """Contract the object; wait for a running expansion."""

    def contracted() -> bool:
        with contextlib.suppress(ClientError):  # refused until the daemon has scanned, and while it expands
            api.act_on_motif(_ACCOUNT, _CONTAINER, _name(text), "expand", wait=20)
            given = api.act_on_motif(_ACCOUNT, _CONTAINER, _name(text), "contract", wait=20)
            return bool(given["outcome"] == "contracted")
        return False

    _until(contracted, f"contracting {text}")


def _first_byte(swift: SwiftHttp, name: str) -> float:
    """Seconds to the first byte of a GET; the rest is read and not counted."""
    pieces = _pieces(swift, name)
    began = time.perf_counter()
    next(pieces)
    seconds = time.perf_counter() - began
    for _ in pieces:
        pass
    return seconds


def _pieces(swift: SwiftHttp, name: str) -> Iterator[bytes]:
    """The body of an object in pieces, as they arrive."""
    with contextlib.closing(http.client.HTTPConnection(swift.address, timeout=_PATIENCE)) as connection:
        connection.request("GET", f"{swift.account}/{_CONTAINER}/{name}", headers={"X-Auth-Token": swift.token})
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            raise PeerError(f"GET {name}: {answer.status} {answer.read(200)!r}")
        while piece := answer.read1(_PIECE):
            yield piece


def _by_hand(swift: SwiftHttp, text: str, size: int) -> int:
    """Read the source, and store the received bytes under another name; return their number."""
    read = 0

    def counted() -> Iterator[bytes]:
        nonlocal read
        for piece in _pieces(swift, f"source-{_name(text)}"):
            read += len(piece)
            yield piece

    path = f"{swift.account}/{_CONTAINER}/by-hand-{_name(text)}"
    with contextlib.closing(http.client.HTTPConnection(swift.address, timeout=_PATIENCE)) as connection:
        headers = {"X-Auth-Token": swift.token, "Content-Length": str(size)}
        connection.request("PUT", path, body=counted(), headers=headers)
        answer = connection.getresponse()
        if answer.status != http.client.CREATED:
            raise PeerError(f"PUT {path}: {answer.status} {answer.read(200)!r}")
    return read


def _until(question: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _PATIENCE
    while not question():
        if time.monotonic() > end:
            raise PeerError(f"{what}: not within {_PATIENCE:g} s")
        time.sleep(0.1)


def _name(text: str) -> str:
    return text.replace(" ", "")
