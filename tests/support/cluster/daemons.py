"""Runs the background daemons of Swift in a cluster: replicator, auditor, updater, reconstructor, expirer, sharder …"""

from __future__ import annotations

import configparser
import re
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sluice_aio.base.layout import Layout
from sluice_aio.base.processes import ProcessId
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.components import swift_command
from sluice_aio.conf.storage import DAEMONS, WITH_RSYNC
from sluice_aio.errors import LaunchError

#: Seconds that one round may take.
ROUND_LIMIT: Final = 120.0
#: Log lines that a daemon without errors does not write.
_ALARM: Final = re.compile(
    r"ERROR|CRITICAL|Traceback|Quarantined|not audited|(quarantined|errors): *[1-9]"
    r"|\b[1-9]\d* (quarantine|error|failure)"
)


def run_daemon(
    cluster: Cluster,
    name: str,
    once: bool = True,
    servers: Collection[str] | None = None,
    options: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
) -> dict[str, str]:
    """Run Swift's daemon ``name`` (``object-replicator``) on ``servers``, by default on all that have one.

    :param once: one round, one server after the other; False leaves them running as services
        (``object-replicator@object1``)
    :param options: more options of the daemon's section, for a round only
    :param arguments: more arguments on its command line, for a round only
    :returns: server → the daemon's log lines of its round
    :raises LaunchError: for an unknown daemon, or when a round fails or does not end
    """
    confs = servers_of(name, servers)
    if name in WITH_RSYNC:
        cluster.add({"rsync"})
    if not once:
        cluster.add({f"{name}@{conf}" for conf in confs})
        return {}
    return {conf: run_once(cluster.layout, name, conf, options or {}, arguments) for conf in confs}


def run_round(cluster: Cluster, name: str, **given: Any) -> dict[str, str]:
    """One round of a daemon, without errors in its log; as :func:`run_daemon`."""
    logs = run_daemon(cluster, name, **given)
    for log in logs.values():
        assert not [line for line in log.splitlines() if _ALARM.search(line)], log
    return logs


def servers_of(name: str, servers: Collection[str] | None = None) -> tuple[str, ...]:
    """The servers on which daemon ``name`` runs: ``servers``, or all possible ones.

    :raises LaunchError: for a daemon that Swift does not have, or a server without it
    """
    if name not in DAEMONS:
        raise LaunchError(f"no daemon `{name}`, expected one of {', '.join(DAEMONS)}")
    known = DAEMONS[name]
    unknown = sorted(set(servers or ()) - set(known))
    if unknown:
        raise LaunchError(f"no {name} on `{unknown[0]}`, expected some of {', '.join(known)}")
    return known if servers is None else tuple(one for one in known if one in servers)


def run_once(layout: Layout, name: str, conf: str, options: Mapping[str, str], arguments: Sequence[str]) -> str:
    """One round with the configuration ``conf``; return its log lines, which are in the log folder, too.

    :raises LaunchError: when it fails or does not end
    """
    file = _with_options(layout, name, conf, options)
    command = swift_command(layout, f"swift-{name}", str(file), "once", "-v", *arguments)
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        known = ProcessId.find(process.pid)
        try:
            output, _ = process.communicate(timeout=ROUND_LIMIT)
        except subprocess.TimeoutExpired:
            raise LaunchError(f"{name} of {conf} did not end in {ROUND_LIMIT:g} s") from None
        finally:
            if known is not None:
                known.end(0.0)
    with open(layout.logs / f"{name}@{conf}.log", "a", encoding="utf-8") as log:
        log.write(output)
    if process.returncode != 0:
        raise LaunchError(f"{name} of {conf} ended with status {process.returncode}: {output[-2000:]}")
    return output


def _with_options(layout: Layout, name: str, conf: str, options: Mapping[str, str]) -> Path:
    """The server's configuration; with ``options`` a changed copy of it."""
    file = layout.swift_dir / f"{conf}.conf"
    if not options:
        return file
    parser = configparser.ConfigParser(interpolation=None, default_section="")
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(file)
    parser[name].update(options)
    changed = layout.swift_dir / f"{conf}-{name}.conf"
    with open(changed, "w", encoding="utf-8") as out:
        parser.write(out)
    return changed
