"""The configuration of CollectD, which measures the machine, as ``docs/reference/metrics.md`` says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sluice_core.connections.bus_connection import parse_bus_url
from sluice_core.connections.exchanges import METRICS_EXCHANGE
from sluice_core.connections.urls import ServerUrl, check_hostname
from sluice_core.metrics.node_metrics import collectd_routing_key

PROGRAM: Final = "/usr/sbin/collectd"

_GENERAL: Final = """\
Hostname "{node}"
FQDNLookup false
Interval {interval}
BaseDir "{folder}"
PIDFile "{folder}/collectd.pid"
TypesDB "/usr/share/collectd/types.db"
LoadPlugin logfile
<Plugin logfile>
  LogLevel "info"
  File STDOUT
</Plugin>
"""

_MEASURES: Final = """\
LoadPlugin cpu
LoadPlugin memory
LoadPlugin disk
LoadPlugin interface
LoadPlugin amqp
<Plugin cpu>
  ReportByCpu false
  ReportByState false
  ValuesPercentage true
</Plugin>
<Plugin memory>
  ValuesAbsolute false
  ValuesPercentage true
</Plugin>
<Plugin disk>
  Disk "/^([hsv]d[a-z]+|xvd[a-z]+|nvme[0-9]+n[0-9]+)$/"
</Plugin>
<Plugin interface>
{links}
</Plugin>
"""

_SENDS: Final = """\
<Plugin amqp>
  <Publish "sluice">
    Host {hosts}
    Port "{port}"
    VHost {vhost}
    User {user}
    Password {password}
    Exchange "{exchange}"
    RoutingKey "{key}"
    Format "JSON"
    StoreRates true
    ConnectionRetryDelay 5
{tls}  </Publish>
</Plugin>
"""


def configuration(node: str, amqp_url: str, folder: Path, interval: int = 10, links: Sequence[str] = ()) -> str:
    """The text of a collectd.conf; ``links`` are the counted network interfaces, by default all but ``lo``."""
    link = parse_bus_url(amqp_url)
    chosen = [f'  Interface "{name}"' for name in links or ("lo",)] + [f"  IgnoreSelected {str(not links).lower()}"]
    sends = _SENDS.format(
        hosts=" ".join(_quoted(host.name) for host in link.hosts),
        port=link.hosts[0].port,
        vhost=_quoted(link.path or "/"),
        user=_quoted(link.user or "guest"),
        password=_quoted(link.password or "guest"),
        exchange=METRICS_EXCHANGE,
        key=collectd_routing_key(node),
        tls="".join(f"    {line}\n" for line in _tls(link)),
    )
    general = _GENERAL.format(node=node, interval=interval, folder=folder)
    return general + _MEASURES.format(links="\n".join(chosen)) + sends


def _tls(link: ServerUrl) -> list[str]:
    if link.scheme != "amqps":
        return []
    files = {"ssl_ca_certs": "TLSCACert", "ssl_certfile": "TLSClientCert", "ssl_keyfile": "TLSClientKey"}
    named = [f"{name} {_quoted(link.options[option])}" for option, name in files.items() if option in link.options]
    return [
        "TLSEnabled true",
        "TLSVerifyPeer true",
        f"TLSVerifyHostName {str(check_hostname(link.options)).lower()}",
        *named,
    ]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def write_collectd(folder: Path, text: str) -> Path:
    """Write ``text`` as collectd.conf into ``folder``, readable by its owner only: it holds the broker's password."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "collectd.conf"
    path.touch(0o600)
    path.write_text(text, encoding="utf-8")
    return path
