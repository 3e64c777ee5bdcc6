"""Runs Swift's functional suite against a proxy, in a process of its own, and never hangs with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tests.support.swift_suite import plugin
from tests.support.swift_suite.outcomes import FAILED, Outcomes

from sluice_aio.base.files import section
from sluice_aio.base.processes import ProcessId
from sluice_aio.conf.common import USERS
from sluice_aio.conf.proxy import STORAGE_DOMAIN
from sluice_aio.errors import LaunchError

#: Path from which the suite's process loads the plugin.
ROOT: Final = Path(__file__).parents[3]
#: Seconds without an event after which the running test is aborted.
PATIENCE: Final = 240.0
#: The same before the first test.
START_PATIENCE: Final = 300.0
_FOLDERS: Final = ("test/functional", "test/s3api")
#: tests.py has a quarter of all tests, and pytest would not collect it by default.
_PYTEST: Final = "[pytest]\npython_files = test_*.py tests.py\naddopts = -p no:cacheprovider\n"


def test_conf(proxy_url: str) -> str:
    """The suite's configuration: Swift's address, and its users."""
    func = {"auth_uri": f"{proxy_url}/auth/v1.0", "s3_storage_url": f"{proxy_url}/", "storage_domain": STORAGE_DOMAIN}
    func |= {"service_prefix": "SERVICE", "collate": "C", "insecure": "no"}
    s3 = {"endpoint": proxy_url, "region": "us-east-1", "s3_acl_tests_enabled": "true"}
    # the suite's numbers of users
    numbers = {"": "test:tester", "2": "test2:tester2", "3": "test:tester3", "5": "test5:tester5", "6": "test:tester6"}
    for number, user in numbers.items():
        account, _, name = user.partition(":")
        func |= {f"account{number}": account, f"username{number}": name, f"password{number}": USERS[user][0]}
    # S3 users share the first one's account: two owners and one without rights
    for number, user in {"1": "test:tester", "2": "test:tester2", "3": "test:tester3"}.items():
        key = USERS[user][0]
        s3 |= {f"access_key{number}": user, f"secret_key{number}": key}
        mark = "" if number == "1" else number
        func |= {f"s3_access_key{mark}": user, f"s3_secret_key{mark}": key}
    return section("func_test", func) + "\n" + section("s3api_test", s3)


class Suite:
    """The unpacked suite in ``root``, for the proxy at ``proxy_url``; ``work`` gets configuration and logs."""

    def __init__(self, root: Path, work: Path, proxy_url: str, say: Callable[[str], None]) -> None:
        self._root = root
        self._work = work
        self._say = say
        self._address = urlsplit(proxy_url).netloc
        (work / "test.conf").write_text(test_conf(proxy_url), encoding="utf-8")
        (work / "pytest.ini").write_text(_PYTEST, encoding="utf-8")

    def run(self, expression: str = "", choice: Collection[str] | None = None) -> Outcomes:
        """Run the tests that pytest's ``-k`` selects among the chosen ones (all without a choice), the failed ones
        twice.

        :raises LaunchError: when the suite does not even start
        """
        outcomes = self._to_the_end(expression, choice)
        if outcomes.failed:
            self._say(f"trying {len(outcomes.failed)} failed tests again")
            outcomes.retried(self._to_the_end("", outcomes.failed))
        return outcomes

    def _to_the_end(self, expression: str, choice: Collection[str] | None) -> Outcomes:
        """Repeat the run, each time without a test that never ended."""
        outcomes = Outcomes()
        while True:
            collected, stuck = self._once(expression, choice, outcomes)
            if not stuck:
                return outcomes
            outcomes.add(stuck, FAILED, f"nothing happened for {PATIENCE:g} s")
            choice = [test for test in collected if test not in outcomes.tests]
            if not choice:
                return outcomes

    def _once(self, expression: str, choice: Collection[str] | None, outcomes: Outcomes) -> tuple[list[str], str]:
        """One process; the collected tests, and the one in which it hung."""
        report = self._work / "events.jsonl"
        report.write_text("", encoding="utf-8")
        process, known = self._start(expression, choice, report)
        collected: list[str] = []
        running = ""
        try:
            for event in _events(report, process):
                if "collected" in event:
                    collected = event["collected"]
                    self._say(f"{len(collected)} tests")
                running = event.get("begins", "")
                if "test" in event:
                    outcomes.add(event["test"], event["outcome"], event["why"])
                    if len(outcomes.tests) % 100 == 0:
                        self._say(outcomes.summary())
            stuck = running if process.poll() is None else ""
        finally:
            if known is not None:
                known.end(5.0)
            process.wait()
        if not stuck and process.returncode not in (0, 1, 5):
            raise LaunchError(f"the suite ended with status {process.returncode}, see `{self._work / 'pytest.log'}`")
        return collected, stuck

    def _start(
        self, expression: str, choice: Collection[str] | None, report: Path
    ) -> tuple[subprocess.Popen[bytes], ProcessId | None]:
        junit = self._work / "junit.xml"
        command = [sys.executable, "-m", "pytest", "-c", str(self._work / "pytest.ini"), f"--rootdir={self._root}"]
        command += ["-p", plugin.__name__, f"--junit-xml={junit}", "-o", f"cache_dir={self._work / 'cache'}"]
        command += ["-k", expression] if expression else []
        environment = dict(os.environ)
        environment |= {
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH")])),
            # a plugin of another tool would import ssl before Swift's tests have made it green
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "SWIFT_TEST_CONFIG_FILE": str(self._work / "test.conf"),
            # else an unreadable configuration makes a run that never uses this cluster
            "SWIFT_TEST_IN_PROCESS": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            plugin.REPORT: str(report),
        }
        if choice is not None:
            chosen = self._work / "choice"
            chosen.write_text("\n".join(choice), encoding="utf-8")
            environment[plugin.CHOICE] = str(chosen)
        with open(self._work / "pytest.log", "ab") as log:
            process = subprocess.Popen(
                [*command, *_FOLDERS],
                cwd=self._root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return process, ProcessId.find(process.pid)


def _events(report: Path, process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    """The events in ``report`` as they arrive, until the process ends or is silent for too long."""
    quiet = 0.0
    patience = START_PATIENCE
    with open(report, encoding="utf-8") as file:
        while True:
            ended = process.poll() is not None
            position = file.tell()
            line = file.readline()
            if line.endswith("\n"):
                quiet = 0.0
                event = json.loads(line)
                patience = PATIENCE if "begins" in event else START_PATIENCE
                yield event
                continue
            file.seek(position)
            if ended or quiet > patience:
                return
            try:
                process.wait(0.2)
            except subprocess.TimeoutExpired:
                quiet += 0.2
