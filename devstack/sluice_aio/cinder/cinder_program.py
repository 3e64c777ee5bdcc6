"""``python cinder_program.py <folder> <block>``: a whole Cinder in one process, for one machine.

Run by the Python of Cinder's own virtual environment, in which Sluice is not installed; so this file imports
nothing of Sluice.  The folder holds ``cinder.conf``; ``block`` is the folder of the driver's package.

API, scheduler and volume services use ``fake://``, an exchange that exists in one process only.  Cinder expects
each of them in a separate process; three overrides correct that here.
"""

import os
import sys
from pathlib import Path

os.umask(0o077)
FOLDER, BLOCK = (Path(word).resolve() for word in sys.argv[1:])
# place of Debian's bindings for the Ceph driver
sys.path += [str(BLOCK), str(FOLDER / "ceph-modules")]
# os-brick searches mount.nfs there
os.environ["PATH"] = os.pathsep.join([str(FOLDER / "bin"), os.environ.get("PATH", os.defpath)])

from cinder import monkey_patch

monkey_patch.patch()

import eventlet
import os_brick
from cinder import coordination, objects, rpc, service, version
from cinder.common import config
from cinder.db import migration
from oslo_config import cfg
from oslo_log import log as logging

CONF = cfg.CONF


class OwnService(service.Service):
    """A service that reports its own state: Cinder keeps the id of the process' one service in the class."""

    def report_state(self) -> None:
        """Like Cinder, with the id of this service."""
        service.Service.service_id = self.origin_service_id
        super().report_state()


def main() -> None:
    """Create the schema if necessary, then serve until a signal arrives."""
    sys.argv = ["cinder"]
    objects.register_all()
    CONF(["--config-file", str(FOLDER / "cinder.conf")], project="cinder", version=version.version_string())
    logging.setup(CONF, "cinder")
    config.set_middleware_defaults()
    os_brick.setup(CONF)
    from cinder.scheduler import host_manager  # needs the registered objects

    # the API receives the scheduler's view of a pool unchanged, and copies it
    host_manager.ReadOnlyDict.copy = lambda self: dict(self.data)
    migration.db_sync()
    coordination.COORDINATOR.start()
    rpc.init(CONF)
    volumes = [
        OwnService.create(host=f"{CONF.host}@{backend}", service_name=backend, binary="cinder-volume")
        for backend in CONF.enabled_backends
    ]
    for one in [*volumes, OwnService.create(binary="cinder-scheduler")]:
        one.start()
    service.WSGIService("osapi_volume").start()
    while True:  # its wait() returns immediately
        eventlet.sleep(3600)


if __name__ == "__main__":
    main()
