"""The set-ups in which Swift's functional suite must have the same result as with plain Swift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sluice_aio.base.setup import ALL_PARTS, EC21, Setup
from sluice_aio.errors import LaunchError

#: The suite's objects are small; all sizes are transformed here.
_COMPRESSED: Final = "compression WITH engine=zstd min_size=0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One set-up: how Swift is built, and the policies that are created before the suite starts.

    ``baseline`` names the trial with whose outcomes its own are compared, none for a baseline itself.
    ``transforms``: an upload must be stored with other bytes than its own.  ``uploads``
    are filters to register first, with their code, ``services`` the services that they need.
    """

    name: str
    title: str
    setup: Setup = field(default_factory=Setup)
    sentences: tuple[str, ...] = ()
    baseline: str | None = "plain"
    transforms: bool = False
    uploads: tuple[tuple[Mapping[str, Any], bytes], ...] = ()
    services: frozenset[str] = frozenset()


#: The code of :data:`ISOLATED_NOOP`: passes bytes on, outside Swift's processes.
NOOP: Final = b"""
class Noop:
    def __init__(self, params, direction):
        pass

    def feed(self, data):
        return data

    def finish(self):
        return b""
"""
ISOLATED_NOOP: Final = {
    "keyword": "inoop",
    "environment": "process",
    "language": "python",
    "main": "Noop",
    "capabilities": {"changes_content": False, "changes_length": False, "on_put": True, "on_get": True},
}
_ON_PROXY: Final = (f"FOR ALL TENANTS DO SET {_COMPRESSED} ON PROXY, SET encryption ON PROXY",)
_ON_NODES: Final = (f"FOR ALL TENANTS DO SET {_COMPRESSED} ON STORAGE_NODE, SET encryption ON STORAGE_NODE",)

_TABLE: Final = (
    Trial(name="plain", title="plain Swift, three replicas", setup=Setup.plain(), baseline=None),
    Trial(name="plain-ec", title="plain Swift, erasure-coded 2+1", setup=Setup.plain(EC21), baseline=None),
    Trial(name="a", title="all middlewares, no policy"),
    Trial(name="b", title="compression and encryption on the proxy", sentences=_ON_PROXY, transforms=True),
    Trial(name="c", title="compression and encryption on the storage nodes", sentences=_ON_NODES, transforms=True),
    Trial(
        name="d1",
        title="as b, erasure-coded 2+1",
        setup=Setup(default_policy=EC21),
        sentences=_ON_PROXY,
        baseline="plain-ec",
        transforms=True,
    ),
    Trial(
        name="d2",
        title="as c, erasure-coded 2+1",
        setup=Setup(default_policy=EC21),
        sentences=_ON_NODES,
        baseline="plain-ec",
        transforms=True,
    ),
    Trial(
        name="e",
        title="caching on the proxy",
        setup=Setup(parts=ALL_PARTS),
        sentences=("FOR ALL TENANTS DO SET caching WITH admit=1 ON PROXY",),
    ),
    Trial(
        name="f",
        title="an isolated noop on PUT and GET",
        sentences=("FOR ALL TENANTS DO SET inoop ON PROXY",),
        uploads=((ISOLATED_NOOP, NOOP),),
        services=frozenset({"sandbox"}),
    ),
    Trial(
        name="g",
        title="every object gives up its bytes and is expanded for each reader",
        setup=Setup(motif_options={"reexpansion_share": "100"}),
        sentences=(
            f"FOR ALL TENANTS DO SET motif WITH template=tier policy={EC21}",
            "FOR ALL TENANTS DO SET elasticity WITH target_size=0",
        ),
        services=frozenset({"motifs"}),
    ),
)
TRIALS: Final = {trial.name: trial for trial in _TABLE}


def trial_of(name: str) -> Trial:
    """The trial of this name.

    :raises LaunchError: when it does not exist
    """
    if name not in TRIALS:
        raise LaunchError(f"no set-up `{name}`, expected one of {', '.join(TRIALS)}")
    return TRIALS[name]
