"""A live page that stays open: its memory stays, and it requests at most once a second.

A minute by default, ten with ``make browser-soak``.
"""

import os
import time

from tests.support.browser.answers import event, node, say_nodes

SECONDS = float(os.environ.get("SLUICE_OPEN_SECONDS", "60"))
#: Growth of the heap after garbage collection, beside the noise of a browser.
GROWTH = 1.1
NOISE = 1_000_000


def test_a_page_that_stays_open_neither_grows_nor_asks_more_than_once_a_second(fake_dashboard, fake_api):
    page = fake_dashboard.page
    fake_dashboard.login("admin")
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    page.wait_for_timeout(15_000)  # objects that are created once exist then
    heap, nodes = used(devtools)
    fake_dashboard.findings.clear()
    began = time.monotonic()
    turn = 0
    while time.monotonic() < began + SECONDS:
        turn += 1
        change(fake_api, turn)
        page.wait_for_timeout(1_000)
    passed = time.monotonic() - began
    asked = len(fake_dashboard.findings.requests)
    heap_then, nodes_then = used(devtools)
    print(f"{passed:.0f} s, {asked} requests; bytes {heap} then {heap_then}, nodes {nodes} then {nodes_then}")
    assert asked <= passed + 1
    assert heap_then <= heap * GROWTH + NOISE
    assert nodes_then <= nodes * GROWTH
    assert fake_dashboard.findings.faults == []


def change(api, turn):
    """Other values each second, always the same number of them."""
    say_nodes(api, node("node1"), node("node2", state=("ok", "away")[turn % 2]))
    events = [event(number) for number in range(turn, turn + 8)]
    api.say("GET /events", {"events": events, "next_marker": None, "last": f"{turn}-0"})


def used(devtools):
    """Bytes of the heap and nodes of documents, without unreferenced ones."""
    devtools.send("HeapProfiler.collectGarbage")
    found = {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}
    return found["JSHeapUsedSize"], found["Nodes"]
