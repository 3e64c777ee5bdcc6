"""The real daemon keeps a container's space at its target: sentence, contraction, reads, refill, suspension.

Tests docs/admin/elasticity.md.
"""

import json
import time

from tests.support.cluster.motifs import put

from sluice_aio.base.swift_http import SwiftHttp
from sluice_client import ApiError
from sluice_core.messages.nodes import NodeReport

PARTS = [b"%d: one half of an object\n" % number * 500 for number in range(2)]
WHOLE = b"".join(PARTS)
#: Seconds: a Redis that was just started grants no leases for ten, and a lost space is taken over in as many.
LIMIT = 60.0


def wait_until(question, what):
    end = time.monotonic() + LIMIT
    while not (answer := question()):
        assert time.monotonic() < end, what
        time.sleep(0.1)
    return answer


def fill(swift, container, names, **headers):
    put(swift, f"{container}-parts")
    for number, part in enumerate(PARTS):
        put(swift, f"{container}-parts/{number}", part)
    put(swift, container)
    for name in names:
        put(swift, f"{container}/{name}", WHOLE, **headers)


def concat(container):
    return ",".join(f"AUTH_test/{container}-parts/{number}" for number in range(2))


def available(api):
    """Whether the daemon has announced itself, so that the API accepts sentences about motifs."""
    return bool(api.motif_templates())


def contracted(api, container, name):
    """Whether the newest copy has no bytes; others follow in a moment."""
    return api.motif("AUTH_test", container, name)["contracted"]


def space(api, path):
    return next((one for one in api.spaces() if one["name"] == path), None)


def test_a_space_is_kept_at_its_target_and_filled_again(motifs, swift, api, policies):
    wait_until(lambda: available(api), "no daemon announces templates")
    names = [f"o{number}" for number in range(4)]
    made = json.dumps([{"template": "concat", "params": {"of": concat("el-kept")}}])
    fill(swift, "el-kept", names, x_object_motif=made)
    policy = policies("FOR CONTAINER AUTH_test/el-kept DO SET elasticity WITH target_size=0 verify=trust")["id"]

    def gone():
        return [name for name in names if contracted(api, "el-kept", name)]

    wait_until(lambda: gone() == names, "not everything was contracted")
    wait_until(lambda: space(api, "AUTH_test/el-kept")["contracted_objects"] == 4, "the status is another")
    listed = swift.listing("el-kept")
    assert swift.request("GET", "el-kept/o1").body == WHOLE
    wait_until(lambda: gone() == names, "what was read was not contracted again")
    assert swift.listing("el-kept") == listed

    def settled():
        found = space(api, "AUTH_test/el-kept")
        return found and not found["used"] and found["expansions"] and found

    shown = wait_until(settled, "the status does not tell of the expansion")
    assert (shown["target"], shown["contracted"], shown["contracted_objects"]) == (0, 4 * len(WHOLE), 4)
    assert shown["set_by"] == policy
    page = SwiftHttp(motifs.api_url).raw("GET", "/spaces/metrics", {"X-Auth-Token": motifs.token}).body.decode()
    assert f'sluice_space_bytes{{account="AUTH_test",container="el-kept",what="contracted"}} {4.0 * len(WHOLE)}' in page
    why = api.motif("AUTH_test", "el-kept", "o1", why=True)
    assert why["contracted"]
    assert why["space"]["path"] == "AUTH_test/el-kept"
    assert len(list(api.motifs("AUTH_test", "el-kept"))) == 4
    api.update_policy(policy, {"policy": "FOR CONTAINER AUTH_test/el-kept DO SET elasticity WITH target_size=1GB"})
    wait_until(lambda: gone() == [], "spare space was not filled")
    kinds = {one["kind"] for one in api.events() if one["subject"] == "AUTH_test/el-kept"}
    assert "motif_contracted" in kinds


def test_a_space_forgets_what_clients_delete_or_write_without_motifs(motifs, swift, api, policies):
    wait_until(lambda: available(api), "no daemon announces templates")
    made = json.dumps([{"template": "concat", "params": {"of": concat("el-gone")}}])
    fill(swift, "el-gone", ["kept", "deleted", "written"], x_object_motif=made)
    policies("FOR CONTAINER AUTH_test/el-gone DO SET elasticity WITH target_size=1GB")
    wait_until(lambda: (found := space(api, "AUTH_test/el-gone")) and found["objects"] == 3, "no status")
    assert swift.request("DELETE", "el-gone/deleted").status == 204
    put(swift, "el-gone/written", b"without a motif")
    wait_until(lambda: space(api, "AUTH_test/el-gone")["objects"] == 1, "they are counted still")
    assert space(api, "AUTH_test/el-gone")["used"] == len(WHOLE)


def test_a_sentence_attaches_what_the_metadata_of_an_object_say(motifs, swift, api, policies):
    wait_until(lambda: available(api), "no daemon announces templates")
    policies("FOR CONTAINER AUTH_test/el-said DO SET motif WITH template=concat of=meta:parts")
    fill(swift, "el-said", ["with"], x_object_meta_parts=concat("el-said"))
    put(swift, "el-said/without", WHOLE)
    put(swift, "el-said/wrong", WHOLE, x_object_meta_parts="AUTH_test/el-said-parts/none")
    shown = api.motif("AUTH_test", "el-said", "with")
    assert [(one["template"], one["params"]) for one in shown["motifs"]] == [("concat", {"of": concat("el-said")})]
    for name in ("without", "wrong"):
        assert api.motif("AUTH_test", "el-said", name)["motifs"] == []
    assert api.act_on_motif("AUTH_test", "el-said", "with", "contract")["outcome"] == "contracted"
    assert contracted(api, "el-said", "with")
    operation = api.expand_all("AUTH_test", "el-said")
    ended = wait_until(lambda: (found := api.motif_operation(operation["id"])) and found["ended_at"] and found, "")
    assert (ended["state"], ended["expanded"], ended["failed"]) == ("done", 1, 0)
    assert not contracted(api, "el-said", "with")


def test_a_node_that_does_not_know_motifs_suspends_contraction(motifs, swift, api, store):
    wait_until(lambda: available(api), "no daemon announces templates")
    made = json.dumps([{"template": "concat", "params": {"of": concat("el-old")}}])
    fill(swift, "el-old", ["o"], x_object_motif=made)
    head = store.head()
    store.report(NodeReport("old", head.history, head.epoch, at=time.time(), software="sluice 0.0"))

    def refused():
        try:
            api.act_on_motif("AUTH_test", "el-old", "o", "contract")
        except ApiError as error:
            return str(error)
        api.act_on_motif("AUTH_test", "el-old", "o", "expand")
        return ""

    try:
        reason = wait_until(refused, "contraction goes on")
        assert "node `old` runs `sluice 0.0`, which does not know motifs" in reason
    finally:
        store.forget_node("old")
    wait_until(lambda: not refused(), "contraction stays suspended")


def test_a_condition_on_what_is_contracted_gives_a_space_more(motifs, swift, api, policies):
    wait_until(lambda: available(api), "no daemon announces templates")
    made = json.dumps([{"template": "concat", "params": {"of": concat("el-more")}}])
    fill(swift, "el-more", ["o"], x_object_motif=made)
    policies("FOR CONTAINER AUTH_test/el-more DO SET elasticity WITH target_size=0")
    wait_until(lambda: contracted(api, "el-more", "o"), "it was not contracted")
    policies("FOR CONTAINER AUTH_test/el-more WHEN CONTRACTED > 0 DO SET elasticity WITH target_size=1GB")
    wait_until(lambda: not contracted(api, "el-more", "o"), "the condition gave it nothing")
