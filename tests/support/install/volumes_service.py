"""What the guide takes for granted on hosts with volumes: a Cinder on the controller, with Sluice's driver for NBD."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

from tests.support.hosts.lab import Host, write_file

from sluice_aio.keystone import venv

CLONE: Final = Path(__file__).resolve().parents[3]
PORT: Final = 8776
_CONF: Final = """\
[DEFAULT]
host = controller
state_path = /var/lib/cinder
# all of its services are one process
transport_url = fake://
auth_strategy = keystone
osapi_volume_listen = 0.0.0.0
osapi_volume_listen_port = {port}
osapi_volume_workers = 1
api_paste_config = {shipped}/api-paste.ini
resource_query_filters_file = {shipped}/resource_filters.json
enabled_backends = nbd
# projects that are there from the beginning have their names as ids
project_id_regex = [0-9a-z-]+
# soon enough for a test
backend_stats_polling_interval = 3
report_interval = 3
periodic_interval = 3
periodic_fuzzy_delay = 0
scheduler_driver_init_wait_time = 1
use_stderr = true

[database]
connection = sqlite:////var/lib/cinder/cinder.sqlite

[keystone_authtoken]
www_authenticate_uri = http://controller:5000/v3
auth_url = http://controller:5000/v3
auth_type = password
username = cinder
password = {password}
project_name = service
user_domain_id = default
project_domain_id = default
service_token_roles = service
service_token_roles_required = true

[oslo_concurrency]
lock_path = /var/lib/cinder/lock

[coordination]
backend_url = file:///var/lib/cinder/coordination

[nbd]
volume_driver = sluice_block.cinder_driver.NbdFileDriver
volume_backend_name = nbd
sluice_nbd_folder = /var/lib/cinder/volumes
sluice_nbd_pool = fast sluice:resiliency=none sluice:fabric=nbd sluice:bandwidth=400 sluice:iops=20000
sluice_nbd_export_folder = /run/cinder-nbd
sluice_nbd_address = {address}
"""
_UNIT: Final = """\
[Service]
ExecStart={command}
KillMode=process
"""


def environment() -> Path:
    """The folder of Cinder's virtual environment."""
    return venv.python(service="cinder").parents[1]


def write_cinder(host: Host) -> str:
    """The configuration and the unit ``cinder`` of a host that is not started yet; the password of its user."""
    program = CLONE / "devstack/sluice_aio/cinder/cinder_program.py"
    command = f"{environment()}/bin/python -I {program} /etc/cinder {CLONE / 'block'}"
    password = secrets.token_hex(10)
    shipped = environment() / "etc" / "cinder"
    conf = _CONF.format(port=PORT, shipped=shipped, password=password, address=host.address)
    write_file(host, "/etc/cinder/cinder.conf", conf)
    write_file(host, "/var/lib/cinder/volumes/.keep", "")
    write_file(host, "/etc/systemd/system/cinder.service", _UNIT.format(command=command))
    return password
