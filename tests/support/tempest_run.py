"""Tempest with Sluice's plugin, in a virtual environment of its own, against an all-in-one with Keystone.

The plugin is found as after an installation: by the entry point that setup.cfg declares.  The tests' own environment
has the metadata of Sluice's distribution; Tempest's Python gets a copy of them, and the folder with the plugin.
"""

from __future__ import annotations

import configparser
import csv
import io
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from sluice_aio.cluster.cluster import Cluster
from sluice_aio.keystone import seed, venv
from sluice_aio.keystone.keystone_program import REGION

PLUGIN: Final = "sluice_tempest_plugin"
#: Options of ``[sluice-feature-enabled]``; a cluster whose API lets members set compression has all features.
FEATURES: Final = ("self_service", "storage_network", "uploaded_code")
#: The source root with the plugin.
_SOURCES: Final = Path(__file__).resolve().parents[2] / "devstack"
#: The statuses of a test in a subunit stream.
SUCCESS: Final = "success"
SKIPPED: Final = "skip"
#: Seconds for a whole run.
_PATIENCE: Final = 1200


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one test ended; its name is ``package.module.Class.test[tags]``, or ``setUpClass (package.module.Class)``."""

    test: str
    status: str


class Tempest:
    """A workspace of Tempest's in ``folder`` for ``cluster``.

    :param features: ``true`` or ``false`` for each of :data:`FEATURES`
    """

    def __init__(self, cluster: Cluster, folder: Path, features: Mapping[str, str]) -> None:
        self._python = str(venv.python(service="tempest"))
        self._home, self._workspace = folder, folder / "workspace"
        self._install_metadata(folder / "site")
        self._tempest("init", "--workspace-path", str(folder / "workspaces.yaml"), str(self._workspace))
        self._configure(cluster, features)

    def _install_metadata(self, site: Path) -> None:
        ours = metadata.distribution("openstack-sluice")
        target = site / f"openstack_sluice-{ours.version}.dist-info"
        target.mkdir(parents=True)
        for name in ("METADATA", "entry_points.txt"):
            (target / name).write_text(ours.read_text(name) or "", encoding="utf-8")

    def _configure(self, cluster: Cluster, features: Mapping[str, str]) -> None:
        path = self._workspace / "etc" / "tempest.conf"
        parser = configparser.ConfigParser(interpolation=None)
        parser.read(path, encoding="utf-8")
        parser.read_dict(
            {
                "auth": {
                    "admin_username": seed.ADMIN,
                    "admin_password": seed.password(cluster.layout, seed.ADMIN),
                    "admin_project_name": "admin",
                    "admin_domain_name": "Default",
                },
                "identity": {"uri_v3": cluster.keystone_url, "auth_version": "v3", "region": REGION},
                "service_available": dict.fromkeys(("cinder", "glance", "neutron", "nova", "horizon"), "false"),
                "sluice-feature-enabled": features,
            }
        )
        path.chmod(0o600)
        with path.open("w", encoding="utf-8") as file:
            parser.write(file)

    def plugins(self) -> str:
        """The table of ``tempest list-plugins``."""
        return self._tempest("list-plugins")

    def run(self, regex: str = PLUGIN, concurrency: int = 2) -> tuple[list[Outcome], str]:
        """The outcomes of the tests that ``regex`` selects, and Tempest's output."""
        done = self._call("tempest.cmd.main", "run", "--regex", regex, "--concurrency", str(concurrency))
        stream = self._call("stestr", "last", "--subunit").stdout
        table = self._call("subunit.filter_scripts.subunit2csv", given=stream).stdout.decode()
        outcomes = [Outcome(row["test"], row["status"]) for row in csv.DictReader(io.StringIO(table))]
        return outcomes, (done.stdout + done.stderr).decode(errors="replace")

    def _tempest(self, *arguments: str) -> str:
        done = self._call("tempest.cmd.main", *arguments)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return done.stdout.decode()

    def _call(self, module: str, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a program of Tempest's environment, in the workspace once there is one."""
        return subprocess.run(
            [self._python, "-m", module, *arguments],
            input=given,
            capture_output=True,
            cwd=self._workspace if self._workspace.exists() else self._home,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self._home),
                "PYTHONPATH": os.pathsep.join((str(self._home / "site"), str(_SOURCES))),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            timeout=_PATIENCE,
            check=False,
        )
