"""The cluster in the pictures of the dashboard, and ten minutes of load on it.

Two proxies and three storage nodes, each with an agent and a name of its own, and three projects of Keystone:

* ``acme`` uploads logs, at twice the rate above which its policy compresses them,
* ``genomics`` downloads all the time, with a floor and a ceiling,
* ``media`` and ``acme`` download in between, so that ``genomics`` falls from its ceiling towards its floor.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from benchmarks.harness.corpus import log_corpus
from tests.support.cluster.load import Load, Spec
from tests.support.cluster.steady_requests import Steadily

from sluice_aio.base.layout import STORAGE_AGENTS, Layout
from sluice_aio.base.setup import KEYSTONE, Setup
from sluice_aio.base.swift_http import SwiftHttp, SwiftResponse
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import DEFAULT, PROFILES, SECOND_NODE
from sluice_aio.keystone import seed
from sluice_aio.keystone.http import DOMAIN, KeystoneHttp, swift_client
from sluice_client import ApiError, Client
from sluice_core.errors import PeerError

FIRST_NODE: Final = "proxy-1"
NODES: Final = {"proxy2": "proxy-2", "object1": "storage-1", "object2": "storage-2", "object3": "storage-3"}
ADDRESSES: Final = {"object1": "127.0.0.21", "object2": "127.0.0.22", "object3": "127.0.0.23"}
#: Half of the total download capacity of the proxies.
_PROXY: Final = {"proxy_get_bw": "4MBps", "proxy_put_bw": "20MBps"}
_STORAGE: Final = {"storage_get_bw": "30MBps", "storage_put_bw": "60MBps"}
#: Name and password of the user of all loads, a member of each project: plots show projects.
_LOADER: Final = ("sam", "sam-plays")
PROJECTS: Final = ("acme", "genomics", "media")
#: Uploads of logs a second above which they are compressed.
THRESHOLD: Final = 3
RULE: Final = f"FOR TENANT acme WHEN PUTS_SEC > {THRESHOLD} DO SET compression TRANSIENT"
POLICIES: Final = (RULE, "FOR CONTAINER media/films DO SET caching")
#: Project, objective and rate.
OBJECTIVES: Final = (
    ("genomics", "get_bw", "4MBps"),
    ("genomics", "max_get_bw", "7MBps"),
    ("acme", "get_bw", "2MBps"),
)
STEREOTYPE: Final = {
    "name": "archive",
    "text": "FOR {target} WHEN OBJECT_TYPE = DOCS DO SET compression WITH level=9",
    "help": "documents that are rarely read",
}
LOG: Final = "access-0001.log"
_SIZE: Final = 1 << 20
_LOG_BYTES: Final = 8_000
#: Uploads a second of one client; higher rates use several clients.
_UPLOADS: Final = 2
_PATIENCE: Final = 90.0


@dataclass(frozen=True, slots=True)
class Step:
    """So many seconds of load: uploads a second of ``acme``, and the projects that download meanwhile."""

    seconds: float
    uploads: float
    readers: tuple[str, ...]


#: Ten minutes, the range of the plots; the last step continues while the pictures are taken.
COURSE: Final = (
    Step(80, 1, ("genomics",)),
    Step(90, 1, ("genomics", "media")),
    Step(110, 1, ("genomics", "media", "acme")),
    Step(110, 12, ("genomics",)),
    Step(100, 1, ("genomics", "acme")),
    Step(110, 12, ("genomics",)),
)


def wait_for(question: Callable[[], Any], what: str) -> Any:
    """Return the first true answer.

    :raises PeerError: if there is none within 90 seconds
    """
    end = time.monotonic() + _PATIENCE
    while not (answer := question()):
        if time.monotonic() > end:
            raise PeerError(f"{what}: not within {_PATIENCE:g} s")
        time.sleep(0.2)
    return answer


class Scene:
    """The cluster in ``folder``; a context manager."""

    def __init__(self, folder: Path) -> None:
        self.layout = replace(Layout.free(folder, FIRST_NODE), nodes=NODES, addresses=ADDRESSES)
        agents = {"agent": {**_PROXY, "collectd": "true"}, "agent2": _PROXY, **dict.fromkeys(STORAGE_AGENTS, _STORAGE)}
        options = {"self_service": "compression, caching"}
        setup = Setup(auth=KEYSTONE, proxy_workers=1, storage_agents=True, agent_options=agents, api_options=options)
        names = DEFAULT.union(SECOND_NODE, STORAGE_AGENTS, PROFILES["horizon"], PROFILES["block"])
        self.cluster = Cluster(self.layout, names, setup=setup)
        self._numbers = itertools.count(2)  # the first log exists before

    def __enter__(self) -> Self:
        self.cluster.start(lambda line: print(line, flush=True))
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.stop()

    def prepare(self, ada: Client, alice: Client) -> None:
        """Create projects, their objects, policies, a filter, a stereotype and a volume.

        :param ada: the API with the rights of an administrator
        :param alice: with the rights of a member of ``acme``
        """
        self._make_projects()
        for project in PROJECTS:
            swift = self.swift(project)
            for container in ("logs", "films"):
                swift.request("PUT", container)
            for number in range(4):
                swift.request("PUT", f"films/{_SIZE}-{number}", bytes(range(256)) * (_SIZE // 256))
            swift.request("PUT", f"logs/{LOG}", log_corpus(_LOG_BYTES), content_type="text/plain")
        for name in ("proxy", "proxy2"):  # a proxy reports its capacity when it has served a request
            self.swift("genomics", name).request("GET", f"films/{_SIZE}-0")
        wait_for(lambda: len(ada.nodes()) == len(NODES) + 1, "five nodes")
        for sentence in POLICIES:
            ada.create_policy(sentence, wait=20)
        for objective in OBJECTIVES:
            ada.set_slo(*objective, wait=20)
        stereotypes = ada.collection("/stereotypes")
        stereotypes.create(STEREOTYPE)
        for target in ("acme/reports", "media"):
            ada.collection("/stereotypes/archive/tenants").update(target, {})
        code = (Path(__file__).parents[1] / "examples" / "rot13.py").read_text(encoding="utf-8")
        ada.register_filter({"keyword": "rot13", "environment": "native"})
        for text in (code, code.replace('"rotate letters"', '"rotate letters by thirteen"')):
            ada.upload_filter("rot13", text.encode(), wait=30)
        _use_a_volume(ada, alice)

    def swift(self, project: str, proxy: str = "proxy") -> SwiftHttp:
        """A client of Swift for a member of ``project``."""
        token = KeystoneHttp(self.layout.keystone_url).login(*_LOADER, project)
        return swift_client(self.layout.url(proxy), token)

    @contextlib.contextmanager
    def loaded(self) -> Iterator[None]:
        """Ten minutes of load, before the body of the context; the last step continues in it."""
        readers: dict[str, Load] = {}
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: [load.stop() for load in readers.values()])
            for step in COURSE[:-1]:
                self._change_readers(readers, step)
                with self._uploading(step.uploads):
                    threading.Event().wait(step.seconds)
            self._change_readers(readers, COURSE[-1])
            stack.enter_context(self._uploading(COURSE[-1].uploads))
            threading.Event().wait(COURSE[-1].seconds)
            yield

    def _change_readers(self, readers: dict[str, Load], step: Step) -> None:
        print(f"{step.seconds:g} s: {step.uploads:g} uploads a second, {', '.join(step.readers)} download", flush=True)
        for project in readers.keys() - set(step.readers):
            readers.pop(project).stop()
        for project in set(step.readers) - readers.keys():
            readers[project] = self._reader(project).start()

    @contextlib.contextmanager
    def _uploading(self, rate: float) -> Iterator[None]:
        body, clients = log_corpus(_LOG_BYTES), math.ceil(rate / _UPLOADS)
        with contextlib.ExitStack() as stack:
            for _ in range(clients):
                swift = self.swift("acme")

                def upload(swift: SwiftHttp = swift) -> SwiftResponse:
                    path = f"logs/access-{next(self._numbers):04}.log"
                    return swift.request("PUT", path, body, content_type="text/plain")

                stack.enter_context(Steadily(swift, rate / clients, upload))
                threading.Event().wait(1 / rate)  # so that they do not upload all at once
            yield

    def _reader(self, project: str) -> Load:
        places = [self.layout.url(name).removeprefix("http://") for name in ("proxy", "proxy2")]
        swift = self.swift(project)
        return Load(Spec(places, swift.token, swift.account, "films", connections=4, sizes=(_SIZE,), objects=4))

    def _make_projects(self) -> None:
        keystone = KeystoneHttp(self.layout.keystone_url)
        keystone.token = keystone.login(seed.ADMIN, seed.password(self.layout, seed.ADMIN), seed.ADMIN).id
        (role,) = keystone.call("GET", "/roles?name=member")["roles"]
        name, password = _LOADER
        user = keystone.ensure("user", {"name": name, "password": password, "domain_id": DOMAIN})
        for name in PROJECTS:
            project = keystone.ensure("project", {"name": name, "domain_id": DOMAIN})
            keystone.call("PUT", f"/projects/{project}/users/{user}/roles/{role['id']}")


def _use_a_volume(ada: Client, alice: Client) -> None:
    """A volume of ``acme`` that was attached, grew, has a snapshot, and was once refused to be detached."""

    def ended(operation: Any) -> Any:
        while operation["state"] == "under_way":
            operation = alice.volume_operation(operation["id"], wait=10)
        return operation

    wait_for(lambda: list(ada.pools()), "a pool of Cinder")
    ada.collection("/volumes/tiers").create({"name": "gold", "bandwidth": "100MBps", "fabric": "nbd"})
    volume = ended(alice.create_volume(1, name="invoices", tier="gold"))["volume"]
    device = ended(alice.attach_volume(volume, FIRST_NODE))["data"]["device"]
    ended(alice.extend_volume(volume, 2))
    ended(alice.create_snapshot(volume, "monday"))
    with open(device, "rb"), contextlib.suppress(ApiError):
        ended(alice.detach_volume(volume))  # refused: the device is in use
    ended(alice.detach_volume(volume))
