"""The panels are installed into a stock Horizon as ``docs/admin/dashboard.md`` says, and removed again.

Given a copy of Horizon's environment, a wheel of this clone is installed into it with its extra, and enabled files are
copied; then all of that is removed.
"""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from tests.support.browser.dashboard import password_of
from tests.support.browser.horizon_server import HorizonServer

from sluice_aio.keystone import seed, venv

CLONE = Path(__file__).resolve().parents[3]
PAGES = ("/sluice/", "/sluice_project/")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The Python of a copy of Horizon's environment."""
    original = venv.python(service="horizon").parents[1]
    copy = tmp_path_factory.mktemp("horizon") / "env"
    shutil.copytree(original, copy, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    yield copy / "bin" / "python"
    shutil.rmtree(copy)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "clone"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=CLONE, capture_output=True, check=True, text=True).stdout
    for name in filter(None, tracked.split("\0")):
        if (CLONE / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CLONE / name, tree / name)
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(folder), str(tree))
    (made,) = folder.glob("openstack_sluice-*.whl")
    return made


def pip(python, *arguments):
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def packages(python):
    """The folder of an environment's packages."""
    (found,) = python.parents[1].glob("lib/python3*/site-packages")
    return found


def content(python):
    """Path and digest of every file, except those of bytecode."""
    root = packages(python)
    files = (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def install(python, wheel):
    """Install as the page says; return the copied files."""
    pip(python, "install", "--no-compile", f"{wheel}[horizon]")
    plugin, local = packages(python) / "sluice_dashboard", packages(python) / "openstack_dashboard" / "local"
    copied = []
    for folder in ("enabled", "local_settings.d"):
        for path in sorted((plugin / folder).glob("_6*.py")):
            copied.append(Path(shutil.copy2(path, local / folder)))
    return copied


def statuses(horizon, shared):
    """Statuses of the pages for the administrator of the cluster at ``shared``, whose Keystone ``horizon`` uses."""
    address = horizon.layout.url("horizon")
    with requests.Session() as session:
        page = session.get(f"{address}/auth/login/", timeout=30).text
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[1]
        who = {"username": seed.ADMIN, "password": password_of(shared, seed.ADMIN), "region": "default"}
        session.post(f"{address}/auth/login/", {"csrfmiddlewaretoken": token, **who}, timeout=30, allow_redirects=False)
        return [session.get(address + path, timeout=30).status_code for path in PAGES]


def test_a_stock_horizon_gets_the_panels_and_is_as_before_when_they_are_removed(
    horizon_alone, fake_api, environment, wheel, tmp_path
):
    shared, _ = horizon_alone
    before, frozen = content(environment), pip(environment, "freeze")
    with HorizonServer(tmp_path / "before", shared, python=environment) as horizon:
        assert statuses(horizon, shared) == [404, 404]
    copied = install(environment, wheel)
    with HorizonServer(tmp_path / "with", shared, python=environment) as horizon:
        assert statuses(horizon, shared) == [200, 200]
    for path in copied:
        path.unlink()
    pip(environment, "uninstall", "--yes", "openstack-sluice")
    with HorizonServer(tmp_path / "after", shared, python=environment) as horizon:
        assert statuses(horizon, shared) == [404, 404]
    assert pip(environment, "freeze") == frozen
    after = content(environment)
    assert {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} == set()
