"""Policies over the contents of uploads, over responses, and over single objects, on a live cluster."""

import http.client
import random
import time

from tests.support.cluster.steady_requests import Steadily

from sluice_aio.cluster.disks import stored_sizes

TEXT = b"".join(b"%d: a line that compresses\n" % n for n in range(5000))
NOISE = random.Random(7).randbytes(len(TEXT))


def sizes(cluster, container, name):
    return set(stored_sizes(cluster.device_folders, f"AUTH_test/{container}")[name])


def test_uploads_that_compress_well_are_compressed_and_others_are_not(cluster, api, swift, policies, eventually):
    for container in ("wordy", "noisy"):
        swift.request("PUT", container)
    made = {
        name: policies(f"FOR CONTAINER AUTH_test/{name} WHEN COMPRESSIBILITY > 50% DO SET compression TRANSIENT")
        for name in ("wordy", "noisy")
    }
    uploads = (
        lambda: swift.request("PUT", "wordy/load", TEXT),
        lambda: swift.request("PUT", "noisy/load", NOISE),
    )
    with Steadily(swift, 5, *uploads):
        eventually(lambda: api.policy(made["wordy"]["id"])["state"] == "active", 30)
        eventually(lambda: max(sizes(cluster, "wordy", "load")) < len(TEXT) / 2, 30)
        # stored bytes are compressed now, and samples are plain: the condition stays true
        for number in range(20):
            swift.request("PUT", f"wordy/{number}", TEXT)
        assert api.policy(made["wordy"]["id"])["state"] == "active"
        shown = eventually(lambda: (api.policy(made["noisy"]["id"])["observed"] or {}).get("values"), 30)
        assert shown["COMPRESSIBILITY"] == 1
        assert api.policy(made["noisy"]["id"])["state"] == "waiting"
    assert max(sizes(cluster, "wordy", "19")) < len(TEXT) / 2
    assert sizes(cluster, "noisy", "load") == {len(NOISE)}


def test_a_policy_for_an_object_fires_for_it_alone(api, swift, policies, eventually):
    swift.request("PUT", "single")
    for name in ("hot", "cold"):
        swift.request("PUT", f"single/{name}", TEXT)
    hot, cold = (
        policies(f"FOR OBJECT AUTH_test/single/{name} WHEN GETS_SEC > 2 DO SET noop TRANSIENT")
        for name in ("hot", "cold")
    )
    with Steadily(swift, 10, lambda: swift.request("GET", "single/hot")):
        eventually(lambda: api.policy(hot["id"])["state"] == "active", 30)
        assert api.policy(cold["id"])["state"] == "waiting"
    eventually(lambda: api.policy(hot["id"])["state"] == "waiting", 30)
    assert api.policy(cold["id"])["state"] == "waiting"


def observed(api, policy, metric):
    """The last value that a policy saw; None without one."""
    return ((api.policy(policy["id"])["observed"] or {}).get("values") or {}).get(metric)


def test_errors_are_the_share_of_responses_that_failed(api, swift, policies, eventually):
    swift.request("PUT", "failing")
    assert swift.request("PUT", "failing/o", TEXT).status == 201
    policies("FOR CONTAINER AUTH_test/failing DO SET encryption WITH key=nobody ON PROXY")
    many, most = (
        policies(f"FOR CONTAINER AUTH_test/failing WHEN ERRORS > {share}% DO SET noop TRANSIENT") for share in (20, 80)
    )
    read, write = (lambda: swift.request("GET", "failing/o")), (lambda: swift.request("PUT", "failing/p", TEXT))
    with Steadily(swift, 10, read, write, statuses=(200, 503)):
        eventually(lambda: api.policy(many["id"])["state"] == "active", 30)
        eventually(lambda: 0.3 < (observed(api, many, "ERRORS") or 0) < 0.7)
        assert api.policy(most["id"])["state"] == "waiting"
    with Steadily(swift, 10, read):
        eventually(lambda: observed(api, many, "ERRORS") == 0, 30)
        eventually(lambda: api.policy(many["id"])["state"] == "waiting", 30)
    eventually(lambda: observed(api, many, "ERRORS") is None, 30)


def test_the_hit_ratio_tells_whether_caching_is_of_use(api, swift, policies, eventually):
    swift.request("PUT", "reread")
    for number in range(3):
        assert swift.request("PUT", f"reread/{number}", NOISE[:1000]).status == 201
    policies("FOR CONTAINER AUTH_test/reread DO SET caching WITH admit=1 max_size=1MB")
    made = policies("FOR CONTAINER AUTH_test/reread WHEN HIT_RATIO > 90% DO SET noop TRANSIENT")
    reads = [lambda path=f"reread/{number}": swift.request("GET", path) for number in range(3)]
    with Steadily(swift, 10, *reads):
        eventually(lambda: api.policy(made["id"])["state"] == "active", 30)
        assert observed(api, made, "HIT_RATIO") > 0.9
    absent = [lambda path=f"reread/none{number}": swift.request("GET", path) for number in range(3)]
    with Steadily(swift, 10, *absent, statuses=(404,)):
        eventually(lambda: observed(api, made, "HIT_RATIO") == 0, 30)
        eventually(lambda: api.policy(made["id"])["state"] == "waiting", 30)


def put_slowly(swift, path, seconds):
    """The response to an upload whose body pauses in its middle."""

    def body():
        yield b"half"
        time.sleep(seconds)  # as a slow client does
        yield b"full"

    connection = http.client.HTTPConnection(swift.address, timeout=60)
    headers = {"X-Auth-Token": swift.token, "Content-Length": "8"}
    connection.request("PUT", f"{swift.account}/{path}", body=body(), headers=headers)
    with connection.getresponse() as answer:
        answer.read()
    connection.close()
    return answer


def test_the_slowest_responses_fire_and_the_median_does_not(api, swift, policies, eventually):
    swift.request("PUT", "timed")
    assert swift.request("PUT", "timed/o", TEXT).status == 201
    slowest, median = (
        policies(f"FOR CONTAINER AUTH_test/timed WHEN {metric} > 400ms DO SET noop TRANSIENT")
        for metric in ("RESPONSE_TIME_P95", "RESPONSE_TIME")
    )
    read, write = (lambda: swift.request("GET", "timed/o")), (lambda: put_slowly(swift, "timed/slow", 0.6))
    with Steadily(swift, 10, *[read] * 6, write):
        eventually(lambda: api.policy(slowest["id"])["state"] == "active", 30)
        eventually(lambda: 0.5 < (observed(api, slowest, "RESPONSE_TIME_P95") or 0) < 2, 30)
        eventually(lambda: 0 < (observed(api, median, "RESPONSE_TIME") or 0) < 0.4, 30)
        assert api.policy(median["id"])["state"] == "waiting"
    with Steadily(swift, 10, read):
        eventually(lambda: api.policy(slowest["id"])["state"] == "waiting", 30)
        eventually(lambda: 0 < (observed(api, slowest, "RESPONSE_TIME_P95") or 0) < 0.4, 30)
