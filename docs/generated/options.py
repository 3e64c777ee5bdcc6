"""The options of each daemon and of the middlewares in Swift's servers: sample files and pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from docs.generated.markdown import escaped, page, table

from sluice_actors import settings as actors
from sluice_agent import settings as agent
from sluice_block.konnector import settings as konnector
from sluice_controller import config as api
from sluice_core.options import Option, sample_section
from sluice_middleware.object_server.diskfile import disk_filters
from sluice_middleware.proxy import replica_choice
from sluice_middleware.proxy.middleware import PROXY_OPTIONS
from sluice_middleware.wsgi import worker_context
from sluice_motifs_fs import mount as motif_fs
from sluice_motifs_swift import settings as motifs
from sluice_rewriter import settings as rewriter

_HEAD: Final = """\
# {what}.  Every option is here, commented out, at its default.
# `{command} --sample-config` prints the same.

"""
_MOUNT: Final = """\
# A mount of files with motifs: `sluice-motif-fs mount --config`.  Every option is here, commented out, at its default.

"""
_KEYSTONE: Final = """\
# With auth = keystone, the section of keystonemiddleware stands here, too, or in `keystone_file`:
#[keystone_authtoken]
#auth_url = https://keystone.example.org/v3
#auth_type = password
#username = sluice
#password =
#user_domain_id = default
#project_name = service
#project_domain_id = default
"""
_TYPES: Final = {bool: "true or false", int: "whole number", float: "number", str: "text"}


@dataclass(frozen=True, slots=True)
class Daemon:
    """A daemon: its description ``what``, its ``command`` and its section.

    :param options: of its section
    :param sample: the whole sample file without its head
    """

    what: str
    command: str
    section: str
    options: Sequence[Option]
    sample: str = ""

    def sample_file(self) -> str:
        """Every option, commented out, at its default."""
        head = _HEAD.format(what=self.what, command=self.command)
        return head + (self.sample or sample_section(self.section, self.options))


#: By the name of the sample file without its suffix.
DAEMONS: Final = {
    "api": Daemon(
        "The REST API",
        "sluice-api",
        api.SECTION,
        api.OPTIONS,
        sample_section(api.SECTION, api.OPTIONS) + "\n" + _KEYSTONE,
    ),
    "actors": Daemon("The actor host", "sluice-actors", actors.SECTION, actors.OPTIONS),
    "agent": Daemon("The agent of a Swift node", "sluice-agent", agent.SECTION, agent.OPTIONS),
    "konnector": Daemon("The konnector of volumes", "sluice-konnector", konnector.SECTION, konnector.OPTIONS),
    "rewriter": Daemon(
        "The rewriter of stored objects",
        "sluice-rewriter",
        rewriter.SECTION,
        rewriter.OPTIONS,
        rewriter.sample_file(),
    ),
    "motifs": Daemon("The motif daemon", "sluice-motifs", motifs.SECTION, motifs.OPTIONS, motifs.sample_file()),
}
#: Sections of Swift's own configuration: file and section → options.
SWIFT: Final[dict[str, Sequence[Option]]] = {
    "proxy-server.conf [filter:sluice]": PROXY_OPTIONS,
    "proxy-server.conf [filter:sluice-reads]": worker_context.OPTIONS,
    "proxy-server.conf [app:proxy-server]": replica_choice.OPTIONS,
    "object-server.conf [filter:sluice-storage]": worker_context.OPTIONS,
    "object-server.conf [DEFAULT]": disk_filters.OPTIONS,
}


def samples() -> dict[str, str]:
    """Name of each sample file → its content."""
    mount = _MOUNT + sample_section(motif_fs.SECTION, motif_fs.OPTIONS)
    return {**{f"{name}.conf": one.sample_file() for name, one in DAEMONS.items()}, "motif-fs.conf": mount}


def pages() -> dict[str, str]:
    """Name of each page of options → its content."""
    found = {f"options-{name}.md": _daemon_page(name, one) for name, one in DAEMONS.items()}
    found["options-motif-fs.md"] = page(
        "Options of `sluice-motif-fs`",
        f"Section `[{motif_fs.SECTION}]` of the file that `sluice-motif-fs mount --config` names: "
        "[sample file](sample/motif-fs.conf).",
        _table(motif_fs.OPTIONS),
    )
    sections = (part for section, those in SWIFT.items() for part in (f"## {section}", _table(those)))
    found["options-swift.md"] = page(
        "Options in Swift's configuration",
        "What Sluice's middlewares and disk files read in the configuration files of Swift's servers.",
        *sections,
    )
    return found


def _daemon_page(name: str, daemon: Daemon) -> str:
    return page(
        f"Options of `{daemon.command}`",
        f"{daemon.what}. Section `[{daemon.section}]` of the file that `--config` names: "
        f"[sample file](sample/{name}.conf).",
        _table(daemon.options),
    )


def _table(options: Sequence[Option]) -> str:
    rows = [
        (f"`{one.name}`", _TYPES[type(one.default)], _default(one), escaped(one.help))
        for one in options
        if not one.is_retired
    ]
    return table(("option", "type", "default", "meaning"), rows)


def _default(option: Option) -> str:
    text = str(option.default).lower() if isinstance(option.default, bool) else str(option.default)
    return f"`{text}`" if text else "empty"
