"""What the configuration of a node gives to templates that reach outside of the storage.

It is bound to the classes of templates once, when they are loaded (``templates.registry``), so that a motif holds
nothing but a keyword and parameters, and whoever makes a template needs to know neither hosts nor secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sluice_core.connections.swift_account import SwiftAccount
from sluice_core.connections.url_allowlist import UrlAllowlist
from sluice_filters.api import Filter

#: An uploaded filter by its keyword and the SHA-256 of its code; None when none was uploaded under that keyword.
#: Raises ``SluiceError`` when it cannot be had with that code.
UploadedFilter = Callable[[str, str], type[Filter] | None]


def no_filter(keyword: str, sha256: str) -> None:
    """Where nothing is uploaded."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A container of another Swift, which exists."""

    account: SwiftAccount
    container: str


@dataclass(frozen=True, slots=True)
class TemplateContext:
    """
    :param hosts: those that may be called over HTTP
    :param remotes: by name
    :param uploaded_filter: finds filters that are not installed
    """

    hosts: UrlAllowlist = field(default_factory=UrlAllowlist)
    remotes: Mapping[str, Remote] = field(default_factory=dict)
    uploaded_filter: UploadedFilter = no_filter
