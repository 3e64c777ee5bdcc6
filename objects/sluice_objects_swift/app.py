"""``egg:openstack-sluice#object_home``: the application of ``sluice-objectd``, which serves objects on a storage node.

It runs under Swift's own server (``swift.common.wsgi.run_wsgi``) with ``workers = 0``: one process is the home of an
object, and two processes at one address would take it from each other.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from sluice_core.errors import SluiceError
from sluice_core.options import Option, read_options
from sluice_middleware.swift import green
from sluice_middleware.swift import internal_api as swift
from sluice_objects.classes import BUILT_IN
from sluice_objects.protocol.home import Home
from sluice_objects.protocol.stamps import UNITS
from sluice_objects_swift.home_app import HomeApp, RunningObject
from sluice_objects_swift.peers import SwiftPeers
from sluice_objects_swift.place import Place
from sluice_objects_swift.rings import Rings
from sluice_objects_swift.rows import Rows

log = logging.getLogger(__name__)

OPTIONS: Final = (
    Option("address", "127.0.0.1:6300", "host and port at which proxies and other homes reach this process"),
    Option("state_dir", "/var/lib/sluice/objectd", "folder for the rings that other nodes may still use"),
    Option("swift_dir", "/etc/swift", "folder of Swift's rings"),
    Option("most_objects", 10_000, "objects whose state is kept in memory"),
    Option("ring_period", 60.0, "seconds between two looks whether the ring names other devices for these objects"),
)


class Homes:
    """The objects that this process serves, the least recently used first.

    :param make: makes an object that is not taken over yet
    """

    def __init__(self, make: Callable[[Place], tuple[RunningObject, SwiftPeers]], most: int) -> None:
        self._make = make
        self._most = most
        self._objects: OrderedDict[Place, tuple[RunningObject, SwiftPeers]] = OrderedDict()

    def find(self, place: Place) -> RunningObject:
        """The object at ``place``.  One that is forgotten for it is taken over again when it is called."""
        found = self._objects.get(place)
        if found is None:
            found = self._objects[place] = self._make(place)
            if len(self._objects) > self._most:
                self._objects.popitem(last=False)
        self._objects.move_to_end(place)
        return found[0]

    def follow_rings(self) -> None:
        """Bring the voters of all objects nearer to the devices of the ring."""
        for place, (running, peers) in list(self._objects.items()):
            if running.served.is_home:
                try:
                    wanted = peers.wanted_voters()
                    while wanted and running.served.follow_ring(wanted):
                        log.info("the voters of `%s` follow the ring", place.path)
                except SluiceError as error:
                    log.warning("the voters of `%s` do not follow the ring now: %s", place.path, error)


def app_factory(global_conf: Mapping[str, Any], **local_conf: str) -> HomeApp:
    """Paste's entry point.

    :raises OptionError: when an option cannot be used
    """
    known = {option.name for option in OPTIONS}
    given = {name: value for name, value in global_conf.items() if name in known}  # of [DEFAULT], as swift_dir
    given |= {name: value for name, value in local_conf.items() if not name.startswith("__")}  # others are paste's
    values = read_options(OPTIONS, given, "[app:object-home]")
    folder = Path(values["swift_dir"])
    rings = {
        policy.idx: Rings(folder / f"{policy.ring_name}.ring.gz", Path(values["state_dir"]) / policy.ring_name)
        for policy in swift.POLICIES
    }
    containers = swift.Ring(str(folder), ring_name="container")

    def make(place: Place) -> tuple[RunningObject, SwiftPeers]:
        rows = Rows(partial(_container_servers, containers, place))
        peers = SwiftPeers(place, rings[place.policy], values["address"], rows)
        return RunningObject(lambda: Home(peers, values["address"], _now), BUILT_IN), peers

    homes = Homes(make, values["most_objects"])
    green.start_green(_repeat, homes.follow_rings, values["ring_period"])
    return HomeApp(homes.find)


def _container_servers(ring: Any, place: Place) -> tuple[int, Sequence[Mapping[str, Any]]]:
    partition, nodes = ring.get_nodes(place.account, place.container)
    return partition, nodes


def _now() -> int:
    return int(time.time() * UNITS)


def _repeat(function: Callable[[], None], period: float) -> None:
    while True:
        green.pause(period)
        function()
