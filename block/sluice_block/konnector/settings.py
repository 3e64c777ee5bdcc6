"""The konnector's options, declared once."""

from __future__ import annotations

from typing import Final

from sluice_core.options import Option
from sluice_core.process.logs import LOG_FORMAT

SECTION: Final = "konnector"
OPTIONS: Final = (
    Option("node", "", "name of this node in the cluster, as its agent has it; empty means its host name"),
    Option("run_dir", "/run/sluice/konnector", "folder of sockets and mounts, on a file system that a reboot empties"),
    Option(
        "state_dir",
        "/var/lib/sluice/konnector",
        "folder of the records of attached volumes; holds secrets of connections and keys",
    ),
    Option("cache_dir", "/var/cache/sluice/nbdkit", "folder of our filters for nbdkit, which are built here"),
    Option("log_dir", "/var/log/sluice/volumes", "folder of the logs of requests of volumes"),
    Option("agent_socket", "/run/sluice/agent.sock", "unix socket of this machine's agent; empty for none"),
    Option(
        "snapshot_dir",
        "/var/lib/sluice/snapshot",
        "folder of the agent's snapshot, of policies and uploaded filters; empty for none",
    ),
    Option("code_dir", "/var/lib/sluice/code", "folder into which this machine's agent puts uploaded code"),
    Option(
        "filter_uid", 500000, "user of uploaded filters; each volume has its own, this one or of the 65535 behind it"
    ),
    Option("filter_memory", 256 << 20, "bytes of memory that an uploaded filter may use at a volume"),
    Option("filter_seconds", 30.0, "seconds that an uploaded filter may take for a request, the source's own left out"),
    Option("bind", "", "host:port of the API over TLS, which the controller calls; empty for none"),
    Option("my_ip", "", "address of this machine for others; empty means the host in bind"),
    Option("tls_cert", "", "file with the certificate of the API over TLS, and its chain"),
    Option("tls_key", "", "file with its private key; empty means that the certificate's file has it"),
    Option(
        "keystone_file",
        "",
        "file with a section [keystone_authtoken], whose user asks Keystone about tokens; empty for this file",
    ),
    Option("log_level", "info", "debug, info, warning or error"),
    LOG_FORMAT,
)
