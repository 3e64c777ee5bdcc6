"""How filters, other actions and metrics describe themselves.

The language is checked against these descriptions (through a catalogue); ``/filters`` and ``/registry`` show them; the
data plane and the agents compare them with the code that a node has installed.  They hold no code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

Scalar = str | int | float | bool

PROXY: Final = "proxy"
STORAGE_NODE: Final = "storage_node"
PLACES: Final = (PROXY, STORAGE_NODE)
#: The place of volume filters, and the role of the process that runs them; policies do not name it.
KONNECTOR: Final = "konnector"
#: All places of actions.
ALL_PLACES: Final = (*PLACES, KONNECTOR)

#: The kinds of resources that an action can apply to.
OBJECTS: Final = "objects"
VOLUMES: Final = "volumes"
RESOURCE_TYPES: Final = (OBJECTS, VOLUMES)
#: Its name in code that was uploaded before.
WORLDS: Final = RESOURCE_TYPES

#: The methods of the object requests that request filters accompany.
OBJECT_METHODS: Final = ("GET", "HEAD", "PUT", "POST", "DELETE")

#: Assignment kinds (design section 5).
FILTER: Final = "filter"
BANDWIDTH: Final = "bandwidth"
REPLICATION: Final = "replication"
MOTIF: Final = "motif"
NAMESPACE: Final = "namespace"
#: A filter that no node runs: a federated service is called (``sluice_core.activation``).
SERVICE: Final = "service"
#: Rates that limit a volume on the node that uses it.
THROTTLE: Final = "throttle"
#: The class of a volume; actor hosts have Cinder retype it.
TIER: Final = "tier"
KINDS: Final = (FILTER, BANDWIDTH, REPLICATION, MOTIF, NAMESPACE, SERVICE, THROTTLE, TIER)

#: Where a filter's code runs: in Swift's own process (code of the administrator), or isolated in a
#: Storlets container, a confined Python process, or a WebAssembly instance.  Filters of volumes run in an nbdkit of
#: their own, which is confined, too.
NATIVE: Final = "native"
STORLET: Final = "storlet"
PROCESS: Final = "process"
WASM: Final = "wasm"
NBDKIT: Final = "nbdkit"
ENVIRONMENTS: Final = (NATIVE, STORLET, PROCESS, WASM, NBDKIT)
#: Environments whose code only the administrator uploads; each node tries it before use.
TRIED: Final = (NATIVE, NBDKIT)

#: Parameter types.  ``size`` is bytes (int), ``rate`` bytes per second (float), ``frequency`` a number per second
#: (float), ``duration`` seconds (float), ``percent`` a fraction 0..1 (float).
PARAMETER_TYPES: Final = ("str", "int", "float", "bool", "size", "rate", "frequency", "duration", "percent", "list")


@dataclass(frozen=True, slots=True)
class Range:
    """Least and greatest value of a parameter while another parameter has ``value``."""

    value: Scalar
    minimum: float
    maximum: float


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an action; ``list`` values are comma-separated strings.

    Where the range depends on another parameter of the action (levels of an engine), ``range_by`` is its name and
    ``ranges`` has the range for each of its values (:meth:`ActionInfo.with_range`).
    """

    name: str
    type: str
    help: str
    default: Scalar | None = None
    choices: tuple[Scalar, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    required: bool = False
    range_by: str = ""
    ranges: tuple[Range, ...] = ()

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Return the parameter in JSON data: an object of its fields, of which ``help`` may be missing.

        :raises TypeError: for unknown or missing fields
        """
        ranges = tuple(Range(**one) for one in data.get("ranges", ()))
        return cls(**{"help": "", **data, "choices": tuple(data.get("choices", ())), "ranges": ranges})


@dataclass(frozen=True, slots=True)
class ActionInfo:
    """The meaning of a keyword of ``DO SET keyword``.

    ``keyword`` is lower case.  ``stage`` orders the filters of one pipeline on PUT (lower runs first, next to the
    client); GET runs them backwards.  ``protective`` filters are inherited through narrower scopes until a DELETE names
    them.  ``available`` is False for words of the language that this cluster cannot enforce (yet).  ``on_get`` filters
    transform what a client reads (read-time filters); ``on_request`` filters accompany whole requests, those whose
    method is in ``methods`` (empty: any).  With ``on_answer`` such a filter may begin with the answer to GET and HEAD,
    when only the answer decides a condition on the object.  ``environment`` is native, or the sandbox that runs its
    code.  ``about`` says whether it applies to objects, volumes or both.
    """

    keyword: str
    kind: str
    help: str
    parameters: tuple[Parameter, ...] = ()
    places: tuple[str, ...] = (PROXY,)
    default_place: str = PROXY
    stage: int = 500
    version: int = 1
    on_put: bool = True
    on_get: bool = False
    changes_content: bool = False
    changes_length: bool = False
    reversible: bool = False
    random_access: bool = False
    needs_whole_object: bool = False
    protective: bool = False
    available: bool = True
    on_request: bool = False
    methods: tuple[str, ...] = ()
    on_answer: bool = False
    environment: str = NATIVE
    about: tuple[str, ...] = (OBJECTS,)

    def parameter(self, name: str) -> Parameter | None:
        """The parameter called ``name`` (any case), or None."""
        folded = name.lower()
        return next((one for one in self.parameters if one.name == folded), None)

    def with_range(self, parameter: Parameter, given: Mapping[str, Scalar | None]) -> Parameter:
        """Return ``parameter`` with its range for the values ``given`` of other parameters (default if missing)."""
        by = self.parameter(parameter.range_by) if parameter.range_by else None
        if by is None:
            return parameter
        value = given.get(by.name)
        chosen = by.default if value is None else value
        found = next((one for one in parameter.ranges if one.value == chosen), None)
        return parameter if found is None else replace(parameter, minimum=found.minimum, maximum=found.maximum)


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A workload metric: ``name`` in upper case, one value per target and ``period`` seconds.

    ``unit`` is one of ``count``, ``per_second``, ``bytes``, ``bytes_per_second``,
    ``seconds``, ``fraction``, ``ratio`` (how many times smaller; sentences may also say the share saved,
    in percent).  ``granularities`` are the target levels it is measured at.
    """

    name: str
    unit: str
    help: str
    granularities: tuple[str, ...] = ("tenant", "container", "cluster")
    period: float = 1.0
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AttributeInfo:
    """A request attribute usable in WHEN: ``size`` and ``compressibility`` compare, the others know = and != only."""

    name: str
    type: str
    help: str


REQUEST_ATTRIBUTES: Final = (
    AttributeInfo("OBJECT_SIZE", "size", "bytes of the object: Content-Length of a PUT, stored size on GET"),
    AttributeInfo(
        "OBJECT_COMPRESSIBILITY",
        "compressibility",
        "how many times smaller the first 64 KiB of an upload become; 2 is also written 50%",
    ),
    AttributeInfo("OBJECT_TYPE", "type", "extension, media type, or a coined term such as DOCS"),
    AttributeInfo("OBJECT_TAG", "tag", "a tag out of the comma-separated X-Object-Meta-Tags"),
    AttributeInfo("METHOD", "method", "the HTTP method of the request"),
)
