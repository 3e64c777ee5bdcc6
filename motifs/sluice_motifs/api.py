"""The contract of motif templates.

A *template* is code that makes the bytes of an item; a *motif* is a template with parameters that is attached to
one item (``records``).  Carillon (SYSTOR'16, section 3) calls both motifs.

* ``expand`` yields the bytes of the item, in pieces of any size.  It reads other items through ``call.read``, which
  returns their plain bytes and expands them first if necessary.
* ``sources`` names the items that ``expand`` reads.  Other items cannot be read.
* An *exact* template makes the very same bytes each time, which the item's digest verifies; another one makes an
  equivalent item (a thumbnail by a newer library), and its output replaces the old bytes.
* A *derived* item is computed from its sources, and is stale when one of them changes.  A *preserving* item holds
  bytes that were stored under its own name.  It is contracted only once a copy of them is kept that no client can
  change, so its template is exact and ``keeps_copy``.
* ``contract`` is called before an item is contracted, for templates that have to update something first.  It changes
  no other item.
* ``keep_copy`` is called before that, for templates that read a copy which only the storage's runtime can read.

A template keeps no state between calls; one instance belongs to one motif.  The part of the node's configuration that
it needs (hosts that may be called, other clusters) is in ``context``.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, Final, Protocol, Self

from sluice_core.connections.swift_account import SwiftAccount
from sluice_core.connections.url_allowlist import UrlAllowlist
from sluice_core.describe import ActionInfo, Scalar
from sluice_core.errors import CallerError, SluiceError
from sluice_filters.api import Filter

log = logging.getLogger(__name__)

#: How an item relates to its sources.
DERIVED: Final = "derived"
PRESERVING: Final = "preserving"
RELATIONS: Final = (DERIVED, PRESERVING)

#: The resource that limits a template most.
CPU: Final = "cpu"
NETWORK: Final = "network"
DISK: Final = "disk"
RESOURCES: Final = (CPU, NETWORK, DISK)

#: The template that only keeps a copy.
TIER: Final = "tier"

#: The parameter that ``Template.keep_copy`` adds: the name of a copy of the item's bytes.  No description
#: has it, so users cannot set it.
COPY: Final = "copy"

#: Returns an uploaded filter by its keyword and the SHA-256 of its code; None when none was uploaded under that
#: keyword. Raises ``SluiceError`` when that code is not available.
UploadedFilter = Callable[[str, str], type[Filter] | None]


def no_filter(keyword: str, sha256: str) -> None:
    """For hosts without uploaded filters."""


@dataclass(frozen=True, slots=True)
class Remote:
    """An existing container of another Swift."""

    account: SwiftAccount
    container: str


@dataclass(frozen=True, slots=True)
class TemplateContext:
    """The part of a node's configuration for templates that reach outside the storage.

    It is bound to the template classes when they are loaded (``templates.registry``), so that a motif holds only a
    keyword and parameters, and code that creates a template handles neither hosts nor secrets.

    :param hosts: those that may be called over HTTP
    :param remotes: by name
    :param uploaded_filter: finds filters that are not installed
    """

    hosts: UrlAllowlist = field(default_factory=UrlAllowlist)
    remotes: Mapping[str, Remote] = field(default_factory=dict)
    uploaded_filter: UploadedFilter = no_filter


class ExpansionError(SluiceError):
    """A motif could not make its item; another motif, or the same one later, may succeed."""

    status = 503


class SourceGone(ExpansionError):
    """A source no longer exists: the motif can never make its item again."""

    def __init__(self, source: str) -> None:
        super().__init__(f"source `{source}` does not exist any more")
        self.source = source


class NotContractible(CallerError):
    """The item must not be contracted; the message says why."""

    status = 409


class TooDeep(CallerError):
    """Making the item would need too long a chain of items made from each other."""

    status = 409


@dataclass(frozen=True, slots=True)
class Source:
    """A source that a template reads.

    :param external: whether it is outside the store (a URL, another cluster): it is no item, and not watched
    :param owned: whether it is a copy that only the runtime can read, which no client can see or change
    :param max_age: seconds after which an item that was made of an external source is stale; 0 for never
    """

    name: str
    external: bool = False
    owned: bool = False
    max_age: float = 0.0


class TemplateCall(Protocol):
    """The arguments of a template for one expansion or contraction of ``item``."""

    @property
    def item(self) -> str:
        """The name of the item."""

    @property
    def size(self) -> int:
        """Number of the item's plain bytes."""

    @property
    def digest(self) -> str:
        """Digest of the item's plain bytes, as ``algorithm:hexadecimal``; empty before they are first made."""

    @property
    def identity(self) -> str:
        """The identity that attached the motif."""

    def read(self, source: str) -> Iterator[bytes]:
        """Yield the plain bytes of a source that ``Template.sources`` names; expand it if it is contracted.

        :raises SourceGone: when it does not exist
        :raises ExpansionError: when it cannot be read now, was not named, or the chain of items is too long
        """

    def own_bytes(self) -> Iterator[bytes]:
        """Yield the bytes of the item itself while it has them; the last ones once its digest has verified them."""

    def keep_copy(self, placement: str = "", pieces: Iterator[bytes] | None = None) -> str:
        """Store a copy that only the runtime can read; return its name.

        A copy is named by the SHA-256 of its bytes, and all items of an account with these bytes share it.

        :param placement: a place of the storage, in Swift a storage policy; empty: that of the item
        :param pieces: the bytes to store; by default those of the item
        :raises ExpansionError: when the storage keeps no copies, or none in this place
        """

    def check(self) -> None:
        """Renew the lease; call it every few seconds during computations without reads or yields."""


class Template(ABC):
    """Base of all templates."""

    #: Keyword, parameters and help, as of filters.
    info: ClassVar[ActionInfo]
    relation: ClassVar[str] = DERIVED
    #: The resource that limits it most, one of ``RESOURCES``: the busier it is, the more the template costs.
    resource: ClassVar[str] = CPU
    #: Whether ``expand`` makes the same bytes each time while its sources stay the same; sources with a ``max_age`` may
    #: not, so an item made of them never counts as exact.
    exact: ClassVar[bool] = True
    #: Whether it makes the item from a copy that ``keep_copy`` stores, and cannot make it before.
    keeps_copy: ClassVar[bool] = False
    #: Whether that copy has the bytes of the item, which needs no further verification.
    copy_is_item: ClassVar[bool] = False
    #: The configuration of the node; ``configured`` binds it.
    context: ClassVar[TemplateContext] = TemplateContext()

    def __init__(self, params: Mapping[str, Scalar]) -> None:
        """
        :param params: as ``info`` describes them, checked
        """
        self.params = params

    @classmethod
    def configured(cls, context: TemplateContext) -> type[Self]:
        """Return this template bound to the configuration of a node."""
        return type(cls.__name__, (cls,), {"context": context, "__module__": cls.__module__, "__doc__": cls.__doc__})

    def check(self) -> None:  # noqa: B027  not abstract: for most their description says all
        """Refuse parameters that cannot work although their description allows them; called before a motif is attached.

        :raises CallerError: with the reason
        """

    def is_exact(self) -> bool:
        """Whether ``exact`` holds with these parameters."""
        return self.exact

    @abstractmethod
    def sources(self, item: str) -> Sequence[Source]:
        """The sources that are read to make ``item``; they depend only on its name and the parameters."""

    @abstractmethod
    def expand(self, call: TemplateCall) -> Iterator[bytes]:
        """Yield the bytes of the item.

        :raises ExpansionError: when they cannot be made now
        """

    def verify(self, call: TemplateCall) -> None:  # noqa: B027  not abstract: many need nothing from outside
        """Check whether ``expand`` would find its sources outside the store, at the cost of a HEAD.

        :raises ExpansionError: when it would not
        """

    def keep_copy(self, call: TemplateCall) -> Mapping[str, Scalar]:
        """Keep a copy from which the item can be made; return parameters to store with the motif.

        :raises ExpansionError: when that fails, so that the item is not contracted
        """
        return {}

    def shares_copy_with(self) -> str:
        """An item that may have the bytes of the copy and can be contracted to it; empty without one."""
        return ""

    def contract(self, call: TemplateCall) -> None:  # noqa: B027  not abstract: few have something to do
        """Prepare the item's contraction; ``call.own_bytes`` reads its bytes.

        :raises ExpansionError: when that fails, so that the item is not contracted
        """


@contextmanager
def contained(keyword: str) -> Iterator[None]:
    """Context for a template's code: turns any error into ``ExpansionError``, and logs its bugs."""
    try:
        yield
    except ExpansionError:
        raise
    except SluiceError as error:
        raise ExpansionError(f"{error}") from error
    except Exception as error:  # code of a template may raise any exception
        log.exception("template `%s` failed", keyword)
        raise ExpansionError("the template failed") from error
