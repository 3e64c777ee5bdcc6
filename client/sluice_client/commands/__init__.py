"""Every command by its words; ``sluice``, ``openstack`` and the documentation use this table.

A new command is a class in a module of this package or one below it; ``make generate`` registers it with ``openstack``.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import walk_packages
from typing import Final, NamedTuple

from sluice_client.command_base.command import SluiceCommand

for _module in walk_packages(__path__, f"{__name__}."):
    import_module(_module.name)

#: ``policy list``, for ``sluice policy list`` and ``openstack sluice policy list``, → its class.
COMMANDS: Final[Mapping[str, type[SluiceCommand]]] = dict(sorted(SluiceCommand.by_words.items()))
#: Earlier words → the class that warns and does the same; help omits them.
EARLIER: Final[Mapping[str, type[SluiceCommand]]] = dict(sorted(SluiceCommand.by_earlier_words.items()))


class Topic(NamedTuple):
    """A topic of help: the nouns of its commands, and a command whose example introduces it."""

    things: tuple[str, ...]
    introduced_by: str


TOPICS: Final[Mapping[str, Topic]] = {
    "Policies": Topic(("policy", "effective policy", "permission", "stereotype"), "policy create"),
    "Words of the language": Topic(("tenant group", "container group", "term", "alias"), "tenant group create"),
    "Bandwidth": Topic(("bw", "slo"), "slo set"),
    "Code": Topic(("filter", "dependency", "activation", "controller"), "filter create"),
    "Metrics": Topic(("metric",), "metric history show"),
    "Stored objects": Topic(("container", "placement", "object", "rewrite", "motif", "space"), "rewrite create"),
    "Volumes": Topic(("volume",), "volume create"),
    "Cluster": Topic(("overview", "health", "node", "event", "history", "change", "configuration"), "node list"),
}


def commands_by_topic() -> dict[str, list[str]]:
    """Topic → words of its commands, sorted."""
    found: dict[str, list[str]] = {topic: [] for topic in TOPICS}
    for words in COMMANDS:
        found[topic_of(words)].append(words)
    return found


def topic_of(words: str) -> str:
    """Return the topic of a command: that of the longest noun with which its words begin.

    :raises KeyError: when there is none
    """
    about = {
        thing: topic for topic, one in TOPICS.items() for thing in one.things if f"{words} ".startswith(f"{thing} ")
    }
    return about[max(about, key=len, default=words)]
