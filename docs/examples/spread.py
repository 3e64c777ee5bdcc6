"""The example of docs/admin/controllers.md."""

from collections.abc import Iterable

from sluice_core.control import Assign, Controller, ControllerInfo, Observation


class Spread(Controller):
    """Compresses at storage nodes while their CPUs have time, else at the proxies; busy tenants only."""

    info = ControllerInfo("spread", ("PUT_BW", "NODE_CPU"), 10.0, "compress where there is time for it")
    floor = 1_000_000

    def compute_assignments(self, observation: Observation) -> Iterable[Assign]:
        cpus = observation.values("NODE_CPU", "node").values()
        place = "storage_node" if cpus and max(cpus) < 0.6 else "proxy"
        for tenant, rate in observation.values("PUT_BW", "tenant").items():
            if rate > self.floor:
                level = 9 if rate < 10 * self.floor else 1
                yield Assign(tenant, "compression", {"engine": "zstd", "level": level}, place)
