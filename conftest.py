"""The tiers of the tests, as markers: ``pytest -m unit``, ``service``, ``functional``, ``probe``.

* *unit* starts no server. This file enforces it: a unit test that starts one fails.
* *service* starts Redis, RabbitMQ or processes of Sluice, without Swift's servers; marked, or by the fixtures it uses.
* *functional* is one journey of every capability on a real cluster: ``tests/functional``.
* *probe* kills processes and cuts connections, or tests cases outside a journey: ``tests/probe``, and marked tests.

``alone`` marks tests that measure rates: they run without other tests beside them.

Test processes run in parallel with ``--dist loadgroup``. The tests of a file stay together, and so do those of a
folder that share a cluster: one process starts it, others run tests without one.
"""

import faulthandler
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from sluice_aio.base.server import Child

TIERS = ("unit", "service", "functional", "probe")
ROOT = Path(__file__).parent
#: Letters or bytes of a parameter that is part of the name of its test.
LONGEST_ID = 100
#: Tests that Tempest runs; a probe runs Tempest.
collect_ignore = ["devstack/sluice_tempest_plugin"]
#: Records the temporary folder of a parallel run, to be removed when all tests passed.
SHORT = pytest.StashKey()
#: A copy of standard error from before tests' output is captured.
STDERR = pytest.StashKey()
#: Fixtures that start a server.
SERVERS = frozenset({"redis_server", "rabbit_server", "cluster", "redis_url"})
#: Clusters, each for all tests of a folder that use it.
SHARED = ("cluster", "horizon_cluster", "horizon_alone", "volumes_cluster")


def pytest_configure(config):
    """Give parallel workers short temporary folders: a Unix socket's path has at most 107 bytes."""
    config.stash[STDERR] = os.dup(sys.__stderr__.fileno())
    parallel = getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput")
    if parallel and config.option.basetemp is None:
        config.option.basetemp = Path(tempfile.mkdtemp(prefix="s-")) / "t"
        config.stash[SHORT] = config.option.basetemp.parent


def pytest_sessionfinish(session, exitstatus):
    folder = session.config.stash.get(SHORT, None)
    if folder is not None and exitstatus == pytest.ExitCode.OK:
        shutil.rmtree(folder, ignore_errors=True)


def pytest_make_parametrize_id(val, argname):
    """Keep contents of objects out of the names of tests, which each worker and each report repeats."""
    return f"{argname} of {len(val)}" if isinstance(val, str | bytes) and len(val) > LONGEST_ID else None


@cache
def place(path):
    """A file, as seen from the root."""
    return path.relative_to(ROOT)


def tier(item):
    """The narrowest tier of an item, by its markers or its folder."""
    marked = [name for name in TIERS if item.get_closest_marker(name) is not None]
    if marked:
        return marked[-1]
    folder = place(item.path).parts[:2]
    if folder[0] == "tests" and folder[1] in TIERS:
        return folder[1]
    return "service" if SERVERS & set(item.fixturenames) else "unit"


def group(item):
    """The tests that run in the same process one after the other: those that share a cluster, else one file."""
    for name in SHARED:
        if name in item.fixturenames and not hasattr(item.module, name):
            return f"{name} of {place(item.path).parent}"
    return str(place(item.path))


@pytest.hookimpl(tryfirst=True)  # before xdist writes the groups into the names
def pytest_collection_modifyitems(items):
    for item in items:
        name = tier(item)
        if item.get_closest_marker(name) is None:
            item.add_marker(getattr(pytest.mark, name))
        item.add_marker(pytest.mark.xdist_group(group(item)))
    # the longest tests start first
    items.sort(key=lambda item: item.get_closest_marker("functional") is None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item):
    """Limit the time of a failed test's teardown, too: pytest's limit ends with the failure."""
    limit = float(item.config.getini("faulthandler_timeout"))
    faulthandler.dump_traceback_later(limit, exit=True, file=item.config.stash[STDERR])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Keep servers from starting while a unit test runs, its fixtures of all scopes included."""
    if item.get_closest_marker("unit") is None:
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Child, "start", refuse)
        return (yield)


def refuse(self):
    """Replaces ``Child.start``."""
    raise AssertionError(f"a unit test starts `{self.argv[0]}`: mark it `service`")
