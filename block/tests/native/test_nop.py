"""The counts of ``nop`` in its page, its log, and the bytes that it passes unchanged."""

import pytest
from tests.support.block.nbd import RequestFailed, connected, serve

pytestmark = pytest.mark.service


def counts(page, *names):
    found = page.counters()
    return tuple(getattr(found, name) for name in names)


def test_each_kind_of_request_is_counted_once(tmp_path, built, page, page_file):
    with (
        serve(
            tmp_path,
            built,
            ["nop", "throttle", "nop"],
            "memory",
            "1M",
            f"nop-page={page_file}",
            f"throttle-page={page_file}",
        ) as server,
        connected(server) as client,
    ):
        client.read(4096, 0)
        client.read(512, 7)
        client.write(b"x" * 100, 3)
        client.ask("flush")
        client.ask("trim", 4096, 0)
        client.ask("zero", 4096, 0)
        client.ask("zero", 4096, 4096)
    kinds = ("reads", "read_bytes", "writes", "written_bytes", "flushes", "trims", "zeroes", "under_way")
    assert counts(page, *kinds) == (2, 4608, 1, 100, 1, 1, 2, 0)
    found = page.counters()
    assert (sum(found.read_latency.buckets), sum(found.write_latency.buckets)) == (2, 1)


@pytest.mark.parametrize(
    ("error", "field"), [("EIO", "errors_eio"), ("ENOSPC", "errors_enospc"), ("ENOMEM", "errors_other")]
)
def test_an_error_is_passed_on_and_counted_by_its_kind(tmp_path, built, page, page_file, error, field):
    given = (f"nop-page={page_file}", f"error={error}", "error-rate=100%")
    with (
        serve(tmp_path, built, ["nop"], "--filter=error", "memory", "1M", *given) as server,
        connected(server) as client,
        pytest.raises(RequestFailed),
    ):
        client.read(4096, 0)
    kinds = ("errors_eio", "errors_enospc", "errors_other", "reads", "read_bytes")
    assert counts(page, *kinds) == (*(int(field == name) for name in kinds[:3]), 1, 0)


def test_a_latency_is_what_the_request_took(tmp_path, built, page, page_file):
    given = (f"nop-page={page_file}", "rdelay=30ms")
    with (
        serve(tmp_path, built, ["nop"], "--filter=delay", "memory", "1M", *given) as server,
        connected(server) as client,
    ):
        client.read(4096, 0)
    found = page.counters()
    assert 0.026 < found.read_latency.quantile(0.5) < 3
    assert 0.03 < found.busy < 3


def test_requests_are_logged_while_the_switch_is_on(tmp_path, built, page, page_file):
    log = tmp_path / "requests"
    given = (f"nop-page={page_file}", f"nop-log={log}")
    with serve(tmp_path, built, ["nop"], "memory", "1M", *given) as server, connected(server) as client:
        client.read(512, 0)
        page.set_log(True)
        client.write(b"x" * 100, 3)
        client.read(4096, 8192)
        client.ask("flush")
        page.set_log(False)
        client.read(512, 0)
    lines = [line.split() for line in log.read_text().splitlines()]
    assert [(kind, offset, size, error) for kind, offset, size, _, error in lines] == [
        ("write", "3", "100", "0"),
        ("read", "8192", "4096", "0"),
        ("flush", "0", "0", "0"),
    ]
    assert all(micros.isdigit() for *_, micros, _ in lines)


def test_without_a_page_it_only_passes_on(tmp_path, built):
    with serve(tmp_path, built, ["nop"], "memory", "1M") as server, connected(server) as client:
        client.write(b"data", 5)
        assert client.read(4, 5) == b"data"


def test_what_a_killed_process_had_under_way_can_be_reset(tmp_path, built, page, page_file):
    given = ("memory", "1M", f"nop-page={page_file}")
    delayed = ("--filter=delay", *given, "rdelay=60")
    with serve(tmp_path, built, ["nop"], *delayed) as server, connected(server) as client:
        client.ask("begin", "read", 3, 4096)
        while page.counters().under_way < 3:
            assert server.process.poll() is None
    page.reset_under_way()
    with serve(tmp_path, built, ["nop"], *given) as server, connected(server) as client:
        client.read(4096, 0)
        assert page.counters().under_way == 0
