"""The repeated requests, their times and durations: only idempotent requests are repeated."""

import socket

import pytest

from sluice_client import ApiError, Client, ClientError, Retries, Unreachable

BUSY = {"error": {"code": 503, "title": "Service Unavailable", "message": "redis is away", "problems": []}}
MISSING = {"error": {"code": 404, "title": "Not Found", "message": "there is none", "problems": []}}
CHANGED = {"error": {"code": 412, "title": "Precondition Failed", "message": "it is at version 4", "problems": []}}
REPEATED = {
    "GET": lambda c: c.nodes(),
    "DELETE": lambda c: c.forget_node("n"),
    "PUT with If-Match": lambda c: c.update_filter("x", {"help": "y"}, '"3"'),
    "POST with a key": lambda c: c.create_policy("FOR x"),
    "PUT of code with If-Match": lambda c: c.upload_filter("x", b"code", etag='"3"'),
}
SENT_ONCE = {
    "POST": lambda c: c.adopt(),
    "PUT": lambda c: c.update_filter("x", {"help": "y"}),
    "PUT of code": lambda c: c.upload_filter("x", b"code"),
    "DELETE that keeps": lambda c: c.delete_policy("p", keep=True),
}


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def client(stub, pauses):
    with Client(stub.url, "secret", timeout=5.0, retries=Retries(pause=pauses.append)) as made:
        yield made


@pytest.mark.parametrize("name", REPEATED)
def test_a_broken_connection_is_tried_again(client, stub, pauses, name):
    stub.enqueue(cut=True).enqueue(cut=True).enqueue(200, {"nodes": []})
    REPEATED[name](client)
    assert [len(stub.requests), len(pauses)] == [3, 2]
    assert (
        len({(one.method, one.path, str(one.body), one.headers.get("Idempotency-Key")) for one in stub.requests}) == 1
    )
    assert pauses[0] < pauses[1]


@pytest.mark.parametrize("name", REPEATED)
def test_a_busy_controller_is_retried_after_its_retry_after(client, stub, pauses, name):
    stub.enqueue(503, BUSY, Retry_After="2").enqueue(200, {"nodes": []})
    REPEATED[name](client)
    (pause,) = pauses
    assert 2 <= pause <= 3


@pytest.mark.parametrize("name", SENT_ONCE)
def test_requests_that_are_not_idempotent_are_sent_once(client, stub, pauses, name):
    stub.enqueue(503, BUSY, Retry_After="2").enqueue(cut=True)
    with pytest.raises(ApiError, match="redis is away"):
        SENT_ONCE[name](client)
    with pytest.raises(Unreachable):
        SENT_ONCE[name](client)
    assert (len(stub.requests), pauses) == (2, [])


@pytest.mark.parametrize("value", ["", "soon", "-1", "²", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_503_that_does_not_say_when_to_come_back_is_not_tried_again(client, stub, pauses, value):
    stub.script.clear()
    stub.enqueue(503, BUSY, **({"Retry_After": value} if value.isascii() and value else {}))
    with pytest.raises(ApiError):
        client.nodes()
    assert pauses == []


def test_retries_end_after_four_tries_with_the_reason(client, stub, pauses):
    for _ in range(4):
        stub.enqueue(503, BUSY, Retry_After="1")
    with pytest.raises(ApiError, match="redis is away"):
        client.nodes()
    assert (len(stub.requests), len(pauses)) == (4, 3)


def test_no_pause_is_longer_than_allowed(stub):
    pauses = []
    stub.enqueue(503, BUSY, Retry_After="86400").enqueue(200, {"nodes": []})
    with Client(stub.url, retries=Retries(longest=2.0, pause=pauses.append)) as client:
        client.nodes()
    (pause,) = pauses
    assert 2 <= pause <= 3


def test_pauses_differ_between_clients():
    pauses = []
    for _ in range(20):
        Retries(pause=pauses.append).wait(1)
    assert len(set(pauses)) > 1
    assert all(0.1 <= pause <= 0.15 for pause in pauses)


def test_a_delete_that_may_have_worked_and_then_finds_nothing_is_done(client, stub):
    stub.enqueue(cut=True).enqueue(404, MISSING)
    assert client.forget_node("n") is None


def test_a_delete_that_finds_nothing_at_first_is_refused(client, stub):
    stub.enqueue(404, MISSING)
    with pytest.raises(ApiError, match="there is none"):
        client.forget_node("n")


def test_a_put_that_may_have_worked_says_so_when_it_finds_another_version(client, stub):
    stub.enqueue(cut=True).enqueue(412, CHANGED)
    with pytest.raises(ApiError, match="an earlier try, whose answer was lost, may have done it"):
        client.update_filter("x", {"help": "y"}, '"3"')


def test_an_unreachable_controller_is_tried_four_times(nobody, pauses):
    with Client(nobody, timeout=1.0, retries=Retries(pause=pauses.append)) as client:
        with pytest.raises(Unreachable) as caught:
            client.nodes()
        assert len(pauses) == 3
        with pytest.raises(Unreachable):
            client.adopt()
        assert len(pauses) == 3
    assert str(caught.value) == f"`{nobody}` cannot be reached: [Errno 111] Connection refused"


def test_a_time_out_is_not_retried(pauses):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        impatient = Client(url, timeout=0.05, retries=Retries(pause=pauses.append))
        with impatient, pytest.raises(Unreachable, match=r"does not answer within 0\.05 s"):
            impatient.nodes()
    assert pauses == []


@pytest.mark.parametrize("token", ["secret\n", "se cret", "sécret", "\0"])
def test_a_token_that_no_header_can_carry_is_refused_and_not_repeated(token):
    with pytest.raises(ClientError) as caught:
        Client("http://127.0.0.1", token)
    assert token not in str(caught.value)


def test_a_password_in_the_url_is_not_repeated(nobody):
    client = Client(nobody.replace("//", "//me:geheim@"), retries=Retries(tries=1))
    with client, pytest.raises(Unreachable) as caught:
        client.nodes()
    assert "geheim" not in str(caught.value)
    assert nobody in str(caught.value)


def test_no_token_is_in_what_a_client_prints_of_itself(stub, caplog):
    caplog.set_level("DEBUG")
    stub.enqueue(401, {"error": {"code": 401, "title": "Unauthorized", "message": "no", "problems": []}})
    with Client(stub.url, "never-shown") as client:
        with pytest.raises(ApiError) as caught:
            client.nodes()
        shown = repr(client) + repr(vars(client)) + repr(caught.value) + caplog.text
    assert "never-shown" not in shown
