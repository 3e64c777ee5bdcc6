"""While Redis is unreachable, calls about volumes report that, and change nothing in Cinder and Redis."""

import pytest
from tests.support.block.cinder import login
from tests.support.controller.described_calls import ABOUT_VOLUMES, check_unavailable, example_calls

from sluice_aio.keystone import seed

SOON = 30


@pytest.mark.probe
def test_every_call_about_volumes_is_503_while_redis_is_away(volumes_cluster, volumes_api, eventually):
    made = volumes_api.ask("POST", "/volumes?wait=30", {"size": 1}).json()
    assert made["state"] == "done", made
    schema = volumes_api.ask("GET", "/schema").json()
    names = {"volume": made["volume"], "snapshot": made["volume"], "operation": made["id"]}
    calls = [one for one in example_calls(schema, **names) if one[1].startswith(ABOUT_VOLUMES)]
    assert len(calls) > 15
    cinder = login(volumes_cluster.layout, seed.ADMIN)

    def in_cinder():
        return [sorted(one.id for one in some.list()) for some in (cinder.volumes, cinder.volume_types)]

    def ask(*call):
        answer = volumes_api.ask(*call)
        return answer.status, {name.title(): value for name, value in answer.headers.items()}, answer.body

    before = in_cinder()
    volumes_cluster.kill("redis")
    try:
        assert check_unavailable(ask, calls) == {"GET", "PUT", "POST", "DELETE"}
    finally:
        volumes_cluster.restart("redis")
    assert in_cinder() == before
    eventually(lambda: volumes_api.ask("GET", f"/volumes/operations/{made['id']}").status == 200, SOON)
    assert volumes_api.ask("GET", f"/volumes/{made['volume']}").json()["known"]
