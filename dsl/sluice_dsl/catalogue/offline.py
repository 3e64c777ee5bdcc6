"""The catalogue of ``sluice-dsl``: a cluster that runs everything we ship, and whose names nobody knows.

Motif daemons and konnectors run there, so that their actions, metrics and targets are available as they are to the API
of such a cluster.  Groups, aliases, uploaded code and registered words are known only from a catalogue file
(``catalogue_file``); a tenant, a container, an object and a volume may have any name.
"""

from __future__ import annotations

from collections.abc import Callable

from sluice_core.messages.policies import NAME, VOLUME, Target
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.catalogue.builtin_words import BUILTIN_TEMPLATES
from sluice_dsl.catalogue.motifs import with_motifs
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_dsl.catalogue.volumes import with_volumes


def offline_catalogue() -> Catalogue:
    """What sentences are checked against without a cluster."""
    native = default_catalogue()
    whole = with_motifs(native, {one.keyword: one for one in BUILTIN_TEMPLATES})
    return with_volumes(whole, unknown_volumes(native.account), tuple)


def unknown_volumes(account_of: Callable[[str], str]) -> Callable[[str], list[Target]]:
    """What finds the one volume that a name means where any name may be a volume's.

    :param account_of: the Swift account of a tenant's name
    """

    def find(written: str) -> list[Target]:
        tenant, slash, rest = written.partition("/")
        return [Target(VOLUME, NAME, f"{account_of(tenant)}/{rest}" if slash else written)]

    return find
