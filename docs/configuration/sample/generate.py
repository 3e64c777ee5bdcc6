"""Write the sample files of this folder, and the list of calls in ``docs/reference/rest-api.md``.

Run it by ``make generate``.
"""

from __future__ import annotations

import os
from pathlib import Path

import django

from sluice_actors import settings as actors
from sluice_agent import settings as agent
from sluice_block.konnector import settings as konnector
from sluice_controller import config as api
from sluice_controller.app.policy_sample import sample_policy
from sluice_core.options import sample_section
from sluice_motifs_fs import mount as motif_fs
from sluice_motifs_swift import settings as motifs
from sluice_rewriter import settings as rewriter

HERE = Path(__file__).parent
#: The page whose last section is made here.
API_PAGE = HERE.parents[1] / "reference" / "rest-api.md"
CALLS = "## Calls\n"

_HEAD = """\
# {what}.  Every option is here, commented out, at its default.
# `{command} --sample-config` prints the same.

"""
_MOUNT = """\
# A mount of files with motifs: `sluice-motif-fs mount --config`.  Every option is here, commented out, at its default.

"""
_KEYSTONE = """\
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
_POLICY = """\
# Who may do what, for the option `policy_file`.  Every rule is here, commented out, at its default, below what it
# is for and the calls that ask it.  `sluice-api --sample-policy` prints the same.

"""


def files() -> dict[str, str]:
    """Name → content of each sample."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sluice_controller.app.settings")
    django.setup()

    return {
        "api.conf": _conf("The REST API", "sluice-api", api) + "\n" + _KEYSTONE,
        "actors.conf": _conf("The actor host", "sluice-actors", actors),
        "agent.conf": _conf("The agent of a Swift node", "sluice-agent", agent),
        "konnector.conf": _conf("The konnector of volumes", "sluice-konnector", konnector),
        "rewriter.conf": _HEAD.format(what="The rewriter of stored objects", command="sluice-rewriter")
        + rewriter.sample_file(),
        "motifs.conf": _HEAD.format(what="The motif daemon", command="sluice-motifs") + motifs.sample_file(),
        "motif-fs.conf": _MOUNT + sample_section(motif_fs.SECTION, motif_fs.OPTIONS),
        "policy.yaml": _POLICY + sample_policy(),
    }


def calls() -> str:
    """Every call of the API, as a table."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sluice_controller.app.settings")
    django.setup()
    from drf_spectacular.generators import SchemaGenerator

    paths = SchemaGenerator().get_schema(request=None, public=True)["paths"]
    lines = ["| call | |", "|---|---|"]
    for path, methods in sorted(paths.items()):
        for method in ("get", "post", "put", "delete"):
            if method in methods:
                lines.append(f"| `{method.upper()} {path}` | {methods[method]['summary']} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page of the API with the calls that there are."""
    return API_PAGE.read_text(encoding="utf-8").partition(CALLS)[0] + f"{CALLS}\n{calls()}"


def _conf(what: str, command: str, settings: object) -> str:
    return _HEAD.format(what=what, command=command) + sample_section(settings.SECTION, settings.OPTIONS)


def write() -> None:
    """Write all of it."""
    for name, content in files().items():
        (HERE / name).write_text(content, encoding="utf-8")
    API_PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
