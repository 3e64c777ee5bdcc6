"""Uploads through Horizon: 60 MB with progress, a connection that is cut, and an unreachable API."""

import asyncio
import http.client
import os
import signal
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.support.actors.team import Cable

from sluice_aio.base.ports import HOST
from sluice_client import ApiError

LARGE = 60_000_000
#: Bytes per second at which the browser sends, so that there is time to cut it.
SPEED = 15_000_000
#: Bytes by which Horizon's memory may grow while it receives :data:`LARGE`.
GROWTH = 24_000_000
ADD = "/sluice/code/add/filter/"
BOUNDARY = "a-boundary"
#: Collects the texts for screen readers.
LISTEN = """
window.heard = [];
new MutationObserver(() => heard.push(document.getElementById('sluice-announcer').textContent))
  .observe(document.getElementById('sluice-announcer'), {childList: true});
"""


@pytest.fixture
def large(tmp_path):
    """A WebAssembly module by its first bytes; the nodes detect that it is none."""
    path = tmp_path / "large.wasm"
    path.write_bytes(b"\0asm\1\0\0\0" + os.urandom(LARGE - 8))
    return path


@pytest.fixture
def client(dashboard):
    with dashboard.client("ada") as made:
        yield made
        for keyword in ("large", "short"):
            if registered(made, keyword):
                made.unregister_filter(keyword, force=True)


@pytest.fixture
def form(dashboard):
    return filled(dashboard)


def filled(dashboard):
    """The form for a new filter, filled in except for the file."""
    dashboard.login("ada")
    dashboard.open(ADD)
    dashboard.page.fill("#id_keyword", "large")
    dashboard.page.select_option("#id_environment", "wasm")
    dashboard.page.fill("#id_language", "wasm")
    dashboard.page.evaluate(LISTEN)
    dashboard.findings.clear()
    return dashboard


def slow_down(form):
    """Have the browser send slowly."""
    session = form.context.new_cdp_session(form.page)
    given = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": SPEED}
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", given)


@pytest.fixture
def connection(horizon_cluster):
    """The connection between browser and Horizon: a port of its own, and functions to cut and restore it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    cable = Cable(horizon_cluster.layout.ports["horizon"])

    def run(change):
        asyncio.run_coroutine_threadsafe(change(), loop).result(10)

    run(cable.start)
    yield cable, run
    run(cable.cut)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def registered(client, keyword):
    try:
        return client.filter(keyword)
    except ApiError as error:
        if error.status != 404:
            raise
        return None


def processes(cluster):
    """Horizon's server and its worker."""
    return [one.pid for one in (cluster.process("horizon"), *cluster.workers("horizon"))]


def memory(pid, field):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(field)


def receiving(cluster):
    """Temporary files of uploads that Horizon has open."""
    links = [one for pid in processes(cluster) for one in Path(f"/proc/{pid}/fd").iterdir()]
    return [target for one in links if ".upload" in (target := os.path.realpath(one))]


def test_a_large_file_is_sent_with_progress_that_is_heard_and_never_held_in_memory(
    form, client, large, horizon_cluster
):
    page = form.page
    page.set_input_files("#id_code", large)
    before = {pid: memory(pid, "VmRSS") for pid in processes(horizon_cluster)}
    for pid in before:
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak is measured from here
    page.click("form.sluice-form button[type=submit]")
    page.wait_for_url("**/sluice/code/filters/large/", timeout=60_000)
    gained = {pid: memory(pid, "VmHWM") - rss for pid, rss in before.items()}
    print(f"memory of Horizon grew by {max(gained.values()) / 1e6:.1f} MB for {LARGE / 1e6:.0f} MB")
    assert max(gained.values()) < GROWTH, gained
    found = client.filter("large")
    assert (found["size"], found["revision"]) == (LARGE, 1)
    assert form.findings.faults == []


def test_a_connection_that_is_cut_leaves_nothing_and_the_form_sends_it_again(
    dashboard, connection, client, large, horizon_cluster, eventually
):
    cable, run = connection
    dashboard.url = f"http://{HOST}:{cable.port}"
    page = filled(dashboard).page
    slow_down(dashboard)
    page.set_input_files("#id_code", large)
    page.click("form.sluice-form button[type=submit]")
    page.wait_for_function("document.querySelector('[data-upload] progress').value >= 30")
    dashboard.picture("code-upload")
    run(cable.cut)
    page.get_by_text("The connection was cut: nothing of it is stored").first.wait_for()
    eventually(lambda: not receiving(horizon_cluster), 20)
    assert registered(client, "large") is None
    assert page.input_value("#id_keyword") == "large"
    run(cable.start)
    page.evaluate("heard = []")
    page.click("form.sluice-form button[type=submit]")
    page.wait_for_function("document.querySelector('[data-upload] progress').value >= 80")
    heard = page.evaluate("heard")
    assert [one for one in heard if one.startswith(("25 % of 60.0 MB", "26 % of 60.0 MB"))], heard
    assert len(heard) <= 5
    page.wait_for_url("**/sluice/code/filters/large/", timeout=60_000)
    assert client.filter("large")["size"] == LARGE


def test_an_upload_that_one_stops_leaves_nothing(form, client, large, horizon_cluster, eventually):
    page = form.page
    slow_down(form)
    page.set_input_files("#id_code", large)
    page.click("form.sluice-form button[type=submit]")
    page.wait_for_function("document.querySelector('[data-upload] progress').value >= 10")
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped: nothing of it is stored").first.wait_for()
    eventually(lambda: not receiving(horizon_cluster), 20)
    assert registered(client, "large") is None


def test_an_api_that_is_away_is_said_and_the_file_stays_chosen(form, client, large, horizon_cluster):
    page = form.page
    page.set_input_files("#id_code", large)
    horizon_cluster.kill("api", signal.SIGKILL)
    page.click("form.sluice-form button[type=submit]")
    page.locator("form.sluice-form [role=alert]").first.wait_for(timeout=60_000)
    assert page.evaluate("document.querySelector('#id_code').files.length") == 1
    horizon_cluster.restart("api")
    assert registered(client, "large") is None
    page.click("form.sluice-form button[type=submit]")
    page.wait_for_url("**/sluice/code/filters/large/", timeout=60_000)


def multipart(form, code):
    """A body as the form sends it, up to and including the file."""
    token = form.page.locator("form.sluice-form input[name=csrfmiddlewaretoken]").get_attribute("value")
    fields = {"csrfmiddlewaretoken": token, "keyword": "short", "environment": "wasm", "language": "wasm"}
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    named = 'name="code"; filename="short.wasm"\r\nContent-Type: application/octet-stream'
    return f"{''.join(parts)}--{BOUNDARY}\r\nContent-Disposition: form-data; {named}\r\n\r\n".encode() + code


def test_a_body_that_ends_early_is_not_taken_for_a_shorter_file(form, client):
    body = multipart(form, b"\0asm\1\0\0\0")
    parts = urlsplit(form.url)
    cookies = "; ".join(f"{one['name']}={one['value']}" for one in form.context.cookies())
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    connection.putrequest("POST", ADD)
    given = {
        "Cookie": cookies,
        "Content-Type": f"multipart/form-data; boundary={BOUNDARY}",
        "Content-Length": str(len(body) + 1000),
        "Referer": form.url + ADD,
    }
    for name, value in given.items():
        connection.putheader(name, value)
    connection.endheaders(body)
    connection.sock.shutdown(1)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    assert answer.status == 400 or "The upload was cut" in text
    assert registered(client, "short") is None
