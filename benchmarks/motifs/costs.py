"""The cost of elasticity for objects without motifs: whole nodes with a motif daemon beside nodes with Sluice without
one.

    python -m benchmarks --only motif_costs

Three clusters with everything of Sluice inside Swift, each with its own object servers.  In one of them proxies ask a
motif daemon, and a policy keeps the container, which has one object with a motif beside, in a target size; the two
others have neither.  GETs and PUTs of 10 KB and 1 MB go to the three in turns.  CPU is of the proxy and the object
servers, and of the daemon meanwhile.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import Final

from benchmarks.harness.blocks import of
from benchmarks.harness.figures import Figure, at_most
from benchmarks.harness.pairs import SLUICE, compare
from benchmarks.harness.scale import Scale
from benchmarks.requests.whole_nodes import CONTAINER, SLUICE_NODES, Kind, Samples, WholeNodes, sample

from sluice_aio.base.setup import MOTIFS
from sluice_client import Client
from sluice_client.errors import ClientError
from sluice_core.errors import PeerError

#: CPU of nodes with elasticity as a multiple of that of nodes without.
LIMIT: Final = 1.02
_SPACE: Final = f"AUTH_test/{CONTAINER}"
_WITH_MOTIFS: Final = Kind(
    SLUICE_NODES.components | {"api", "motifs"},
    replace(SLUICE_NODES.setup, parts=SLUICE_NODES.setup.parts | {MOTIFS}),
)
_PATIENCE: Final = 60.0


def measure(scale: Scale) -> list[Figure]:
    """Rows by operation and size."""
    with WholeNodes(scale.folder / "motif-costs", _WITH_MOTIFS, SLUICE_NODES) as nodes:
        cluster = nodes.clusters[SLUICE]
        _make_item(nodes)
        with Client(cluster.api_url, cluster.token) as api:
            api.create_policy(f"FOR CONTAINER {_SPACE} DO SET elasticity WITH target_size=10GB", wait=20)
            _wait_for_space(api)
        return _figures(sample(nodes, scale))


def _make_item(nodes: WholeNodes) -> None:
    """Store an object with a motif: a daemon keeps no space without one."""
    with contextlib.closing(nodes.client(SLUICE)) as swift:
        body = b"a source\n"
        end = time.monotonic() + _PATIENCE
        for path, headers in (("source", {}), ("item", {"x_object_motif": f"concat; of={_SPACE}/source"})):
            while (status := swift.request("PUT", f"{CONTAINER}/{path}", body, **headers).status) != 201:
                if time.monotonic() > end:
                    raise PeerError(f"PUT of `{path}` answers {status}, expected 201")
                time.sleep(0.2)


def _wait_for_space(api: Client) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            api.space(_SPACE)
            return
        except ClientError as error:
            if time.monotonic() > end:
                raise PeerError(f"no daemon keeps the space after {_PATIENCE:g} s: {error}") from error
        time.sleep(0.2)


def _figures(samples: Samples) -> list[Figure]:
    found = []
    for (operation, text), cycles in samples.items():
        cpu = compare(of(cycles, lambda block: block.cpu_per_request("proxy", "objects", "motifs")))
        latency = compare(of(cycles, lambda block: block.latency))
        row = f"{text} {operation} in a container with elasticity, no motifs: CPU of whole nodes × Sluice without"
        beside = f"{cpu.beside()}; {cpu.milliseconds(3)}; median latency {latency.ratio:.3f} ×"
        found.append(at_most(f"motif costs {operation} {text}", row, cpu.ratio, LIMIT, "×", beside))
    return found
