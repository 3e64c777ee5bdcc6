"""The program's additions to Keystone's own application."""

import threading
from concurrent.futures import ThreadPoolExecutor

from sluice_aio.keystone.keystone_program import one_writer


def test_requests_that_may_write_take_turns_and_readers_do_not_wait():
    inside, leave = threading.Event(), threading.Event()
    order = []

    def application(environ, start_response):
        if environ["NAME"] == "first writer":
            inside.set()
            leave.wait(30)
        order.append(environ["NAME"])
        return [environ["NAME"].encode()]

    served = one_writer(application)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(served, {"REQUEST_METHOD": "DELETE", "NAME": "first writer"}, None)
        inside.wait(30)
        second = pool.submit(served, {"REQUEST_METHOD": "POST", "NAME": "second writer"}, None)
        assert served({"REQUEST_METHOD": "GET", "NAME": "reader"}, None) == [b"reader"]
        leave.set()
        assert (first.result(30), second.result(30)) == ([b"first writer"], [b"second writer"])
    assert order == ["reader", "first writer", "second writer"]
