"""The table of ``sluice_controller.identity.rules``: every operation and who may do it by default.

Which call needs which rule stands in the tables of the views (``View.rules``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sluice_controller.config import OPERATOR_ROLES

#: Of the names of all operations.
PREFIX: Final = "sluice:"
NOTHING: Final = "nothing"
THING: Final = "thing"
LIST: Final = "list"


def operator_check(roles: str) -> str:
    """The check of the rule ``operator``, of the value of Swift's option ``operator_roles``."""
    return " or ".join(f"role:{one.strip()}" for one in roles.split(",") if one.strip()) or "!"


@dataclass(frozen=True, slots=True)
class Operation:
    """One rule; ``calls`` (``METHOD /path``) ask it besides the rule of their view."""

    name: str
    check: str
    help: str
    calls: tuple[str, ...] = ()
    about: str = NOTHING


_ADMIN: Final = "rule:admin"
_READER: Final = "rule:admin or role:reader"
_READS_OWN: Final = "rule:admin or (role:reader and rule:own)"
#: An agent of the compute cluster: a role of its own for each stereotype, in the projects that it looks after.
_APPLIES: Final = "rule:admin or (rule:own and role:stereotype-%(stereotype)s)"
_USES_OWN: Final = "rule:admin or (role:member and rule:own)"
#: As Swift takes an object from a project's own users.
_WRITES_OBJECTS: Final = "rule:admin or (rule:operator and rule:own)"
_WRITES_OWN: Final = "rule:admin or (role:member and rule:own and rule:in_container and rule:self_service)"

#: What the rules of operations are made of.
PARTS: Final = (
    Operation("admin", "role:admin", "administrators of the whole cluster"),
    Operation("operator", operator_check(OPERATOR_ROLES), "Swift lets them write objects; see option operator_roles"),
    Operation("own", "project_id:%(project_id)s", "the thing is in the account of the token's project"),
    Operation("in_container", "'container':%(level)s or 'object':%(level)s", "it is about one container or object"),
    Operation("self_service", "'True':%(self_service)s", "all that it sets or deletes is marked self-service"),
)

OPERATIONS: Final = (
    Operation("sluice:policies:list", _READS_OWN, "list policies", about=LIST),
    Operation("sluice:policies:list_all", _ADMIN, "list the policies of everybody"),
    Operation("sluice:policies:create", _WRITES_OWN, "create policies", about=THING),
    Operation("sluice:policies:check", _READS_OWN, "check sentences", about=THING),
    Operation("sluice:policies:complete", _READER, "ask what may be written at a place of a sentence"),
    Operation("sluice:policies:show", _READS_OWN, "show a policy", about=THING),
    Operation("sluice:policies:update", _WRITES_OWN, "give a policy another text, or switch it on or off", about=THING),
    Operation("sluice:policies:firings", _READS_OWN, "show what a policy's actor did", about=THING),
    Operation("sluice:policies:delete", _WRITES_OWN, "delete a policy", about=THING),
    Operation("sluice:policies:undo", _WRITES_OWN, "undo the last change of a policy", about=THING),
    Operation("sluice:nodes:list", _ADMIN, "list nodes"),
    Operation("sluice:nodes:show", _ADMIN, "show a node"),
    Operation("sluice:nodes:forget", _ADMIN, "forget a node"),
    Operation("sluice:nodes:adopt", _ADMIN, "tell nodes to take the current history"),
    Operation("sluice:filters:list", _READER, "list filters"),
    Operation("sluice:activations:register", _ADMIN, "name the service of a filter"),
    Operation("sluice:activations:update", _ADMIN, "name another service"),
    Operation("sluice:activations:delete", _ADMIN, "our own call again"),
    Operation("sluice:deployments:list", _READS_OWN, "list what is deployed at a target", about=THING),
    Operation("sluice:deployments:deploy", _WRITES_OWN, "deploy a filter", about=THING),
    Operation("sluice:deployments:undeploy", _WRITES_OWN, "take a deployment back", about=THING),
    Operation("sluice:dependencies:list", _READER, "list dependencies"),
    Operation("sluice:dependencies:show", _READER, "show one"),
    Operation("sluice:dependencies:create", _ADMIN, "describe a dependency"),
    Operation("sluice:dependencies:update", _ADMIN, "describe it anew"),
    Operation("sluice:dependencies:delete", _ADMIN, "forget one"),
    Operation("sluice:dependencies:upload", _ADMIN, "upload data"),
    Operation("sluice:dependencies:download", _ADMIN, "download data"),
    Operation("sluice:dependencies:deploy", _ADMIN, "attach a dependency to filters"),
    Operation("sluice:dependencies:undeploy", _ADMIN, "detach a dependency from filters"),
    Operation("sluice:groups:list", _ADMIN, "list groups"),
    Operation("sluice:groups:show", _ADMIN, "show a group and its members"),
    Operation("sluice:groups:create", _ADMIN, "make a group"),
    Operation("sluice:groups:update", _ADMIN, "change the members of a group"),
    Operation("sluice:groups:delete", _ADMIN, "forget a group"),
    Operation("sluice:aliases:list", _READER, "list aliases"),
    Operation("sluice:aliases:show", _READER, "show an alias"),
    Operation("sluice:aliases:create", _ADMIN, "make an alias"),
    Operation("sluice:aliases:update", _ADMIN, "change an alias"),
    Operation("sluice:aliases:delete", _ADMIN, "forget an alias"),
    Operation("sluice:stereotypes:list", _READER, "list stereotypes"),
    Operation("sluice:stereotypes:show", _READER, "show a stereotype"),
    Operation("sluice:stereotypes:create", _ADMIN, "make a stereotype"),
    Operation("sluice:stereotypes:update", _ADMIN, "change a stereotype"),
    Operation("sluice:stereotypes:delete", _ADMIN, "forget a stereotype"),
    Operation("sluice:stereotypes:targets", _ADMIN, "list where a stereotype is applied"),
    Operation(
        "sluice:stereotypes:applied",
        f"{_READS_OWN} or (rule:own and role:stereotype-%(stereotype)s)",
        "show what a stereotype has set for a target",
        about=THING,
    ),
    Operation("sluice:stereotypes:apply", _APPLIES, "apply a stereotype to a target", about=THING),
    Operation("sluice:stereotypes:take_back", _APPLIES, "take back what a stereotype has set", about=THING),
    Operation("sluice:filters:show", _READER, "show a registered filter"),
    Operation("sluice:filters:register", _ADMIN, "register a filter"),
    Operation("sluice:filters:update", _ADMIN, "describe a filter anew"),
    Operation("sluice:filters:unregister", _ADMIN, "forget a filter"),
    Operation("sluice:filters:upload", _ADMIN, "upload a filter's code"),
    Operation("sluice:filters:download", _ADMIN, "download a filter's code"),
    Operation("sluice:filters:rollback", _ADMIN, "give a filter an earlier code"),
    Operation(
        "sluice:filters:native",
        _ADMIN,
        "touch a filter that runs with all rights of Swift's processes, or filters volumes; asked besides the rule of "
        "the call",
        calls=(
            "POST /filters",
            "PUT /filters/{keyword}",
            "PUT /filters/{keyword}/data",
            "POST /filters/{keyword}/rollback",
        ),
    ),
    Operation("sluice:metrics:list", _READER, "list metrics"),
    Operation("sluice:metrics:show", _READER, "show a metric"),
    Operation("sluice:metrics:register", _ADMIN, "register a metric"),
    Operation("sluice:metrics:update", _ADMIN, "describe a metric anew"),
    Operation("sluice:metrics:delete", _ADMIN, "forget a metric"),
    Operation("sluice:metrics:upload", _ADMIN, "upload a metric's code, which runs with all rights of Swift's proxies"),
    Operation("sluice:metrics:download", _ADMIN, "download a metric's code"),
    Operation("sluice:metrics:start", _ADMIN, "have a metric measured"),
    Operation("sluice:metrics:stop", _ADMIN, "measure it no more"),
    Operation("sluice:metrics:rollback", _ADMIN, "give a metric an earlier code"),
    Operation("sluice:metrics:instances", _ADMIN, "show which nodes measure a metric"),
    Operation("sluice:metrics:history", _READS_OWN, "show the history of a metric", about=THING),
    Operation("sluice:metrics:series", _READS_OWN, "list the series of which history is kept", about=LIST),
    Operation("sluice:metrics:series_all", _ADMIN, "list the series of everybody"),
    Operation("sluice:metrics:forget", _ADMIN, "forget the history of a target"),
    Operation("sluice:controllers:list", _ADMIN, "list controllers"),
    Operation("sluice:controllers:show", _ADMIN, "show a controller"),
    Operation("sluice:controllers:delete", _ADMIN, "forget a controller"),
    Operation(
        "sluice:controllers:upload", _ADMIN, "upload a controller's code, which runs with all rights of the actor hosts"
    ),
    Operation("sluice:controllers:download", _ADMIN, "download a controller's code"),
    Operation("sluice:controllers:start", _ADMIN, "start a controller"),
    Operation("sluice:controllers:stop", _ADMIN, "stop a controller and take back what it set"),
    Operation("sluice:controllers:rollback", _ADMIN, "give a controller an earlier code"),
    Operation("sluice:controllers:instances", _ADMIN, "show which actor host runs a controller"),
    Operation("sluice:terms:list", _READER, "list coined terms"),
    Operation("sluice:terms:show", _READER, "show a coined term"),
    Operation("sluice:terms:create", _ADMIN, "coin a term"),
    Operation("sluice:terms:update", _ADMIN, "change a coined term"),
    Operation("sluice:terms:delete", _ADMIN, "forget a coined term"),
    Operation("sluice:effective:show", _READS_OWN, "show what is in force for a request", about=THING),
    Operation("sluice:overview:show", _READS_OWN, "count policies by state, and floors that are not met", about=LIST),
    Operation("sluice:overview:show_all", _ADMIN, "count those of everybody, and nodes and hosts by state"),
    Operation("sluice:changes:list", _ADMIN, "list changes"),
    Operation("sluice:changes:show", _ADMIN, "show a change"),
    Operation("sluice:changes:rollback", _ADMIN, "go back to an earlier configuration"),
    Operation("sluice:events:list", _READS_OWN, "list events about policies", about=LIST),
    Operation("sluice:events:list_all", _ADMIN, "list all events"),
    Operation("sluice:rewrites:list", _ADMIN, "list rewrites of stored objects"),
    Operation("sluice:rewrites:show", _ADMIN, "show a rewrite"),
    Operation("sluice:rewrites:create", _ADMIN, "have stored objects rewritten"),
    Operation("sluice:rewrites:pause", _ADMIN, "pause a rewrite"),
    Operation("sluice:rewrites:resume", _ADMIN, "let a rewrite go on"),
    Operation("sluice:rewrites:cancel", _ADMIN, "end a rewrite"),
    Operation("sluice:rewrites:delete", _ADMIN, "forget a rewrite that has ended"),
    Operation("sluice:configuration:export", _ADMIN, "export the configuration"),
    Operation("sluice:configuration:import", _ADMIN, "replace the configuration"),
    Operation("sluice:locality:show", _ADMIN, "show where an object's replicas or fragments are, or a volume"),
    Operation("sluice:placements:list", _ADMIN, "list where new containers of tenants go"),
    Operation("sluice:placements:show", _ADMIN, "show where a tenant's new containers go"),
    Operation("sluice:placements:update", _ADMIN, "say where a tenant's new containers go"),
    Operation("sluice:placements:delete", _ADMIN, "leave a tenant's new containers to Swift's default"),
    Operation("sluice:containers:create", _ADMIN, "create a container on a storage policy"),
    Operation("sluice:bandwidth:show", _ADMIN, "show what object servers give to tenants"),
    Operation("sluice:bandwidth:set", _ADMIN, "let each object server give a tenant so much"),
    Operation("sluice:bandwidth:clear", _ADMIN, "take such values back"),
    Operation("sluice:bandwidth:flows", _READS_OWN, "list what tenants get and move", about=LIST),
    Operation("sluice:bandwidth:flows_all", _ADMIN, "list what all tenants get and move"),
    Operation("sluice:bandwidth:nodes", _ADMIN, "list what nodes can and do move"),
    Operation("sluice:bandwidth:parts", _ADMIN, "list where tenants move what"),
    Operation("sluice:bandwidth:devices", _ADMIN, "list what devices move"),
    Operation("sluice:bandwidth:metrics", _ADMIN, "give Prometheus what tenants get and move, and where"),
    Operation("sluice:slos:list", _READS_OWN, "list service level objectives", about=LIST),
    Operation("sluice:slos:list_all", _ADMIN, "list the service level objectives of everybody"),
    Operation("sluice:slos:show", _READS_OWN, "show a service level objective", about=THING),
    Operation("sluice:slos:set", _ADMIN, "promise a tenant something, or hold it to something"),
    Operation("sluice:slos:delete", _ADMIN, "take a service level objective back"),
    Operation("sluice:volumes:list", _READS_OWN, "list the volumes of a project", about=LIST),
    Operation("sluice:volumes:list_all", _ADMIN, "list the volumes of all projects"),
    Operation("sluice:volumes:show", _READS_OWN, "show a volume and its snapshots", about=THING),
    Operation("sluice:volumes:create", _USES_OWN, "have a volume made", about=THING),
    Operation("sluice:volumes:extend", _USES_OWN, "have a volume grow", about=THING),
    Operation("sluice:volumes:retype", _USES_OWN, "give a volume another tier", about=THING),
    Operation("sluice:volumes:snapshot", _USES_OWN, "make and delete snapshots of a volume", about=THING),
    Operation("sluice:volumes:delete", _USES_OWN, "have a volume deleted", about=THING),
    Operation("sluice:volumes:attach", _USES_OWN, "attach a volume to a node", about=THING),
    Operation(
        "sluice:volumes:adopt",
        _ADMIN,
        "attach a volume that Sluice did not make; asked besides the rule of the call, where the body says `adopt`",
        calls=("POST /volumes/{volume}/attach",),
    ),
    Operation("sluice:volumes:detach", _USES_OWN, "detach a volume", about=THING),
    Operation(
        "sluice:volumes:force_detach",
        _ADMIN,
        "detach a volume although its konnector does not answer; asked besides the rule of the call, where the body "
        "says `force`",
        calls=("POST /volumes/{volume}/detach",),
    ),
    Operation("sluice:volumes:metrics", _ADMIN, "give Prometheus what volumes, tenants and pools of Cinder do"),
    Operation("sluice:volume_operations:list", _READS_OWN, "list operations on a project's volumes", about=LIST),
    Operation("sluice:volume_operations:list_all", _ADMIN, "list operations on all volumes"),
    Operation("sluice:volume_operations:show", _READS_OWN, "show an operation on a volume", about=THING),
    Operation("sluice:tiers:list", _READER, "list tiers of volumes"),
    Operation("sluice:tiers:show", _READER, "show a tier"),
    Operation("sluice:tiers:match", _READER, "find the tier that meets demands"),
    Operation("sluice:tiers:create", _ADMIN, "make a tier and its volume type"),
    Operation("sluice:tiers:update", _ADMIN, "put a tier's volume type right"),
    Operation("sluice:tiers:delete", _ADMIN, "delete a tier and its volume type"),
    Operation("sluice:pools:list", _ADMIN, "list Cinder's pools"),
    Operation("sluice:pools:calibrate", _ADMIN, "measure a pool, or say what was measured of it"),
    Operation("sluice:motifs:list", _READS_OWN, "list objects with motifs of a project", about=LIST),
    Operation("sluice:motifs:list_all", _ADMIN, "list objects with motifs of everybody"),
    Operation("sluice:motifs:templates", _READER, "list templates of motifs"),
    Operation("sluice:motifs:show", _READS_OWN, "show the motifs of an object", about=THING),
    Operation("sluice:motifs:attach", _WRITES_OBJECTS, "attach a motif to an object", about=THING),
    Operation("sluice:motifs:detach", _WRITES_OBJECTS, "detach motifs from an object", about=THING),
    Operation("sluice:motifs:act", _WRITES_OBJECTS, "expand or contract an object", about=THING),
    Operation("sluice:motif_operations:list", _ADMIN, "list expansions of many objects"),
    Operation("sluice:motif_operations:show", _ADMIN, "show an expansion of many objects"),
    Operation("sluice:motif_operations:create", _ADMIN, "have all objects of an account or the cluster expanded"),
    Operation("sluice:motif_operations:cancel", _ADMIN, "end an expansion of many objects"),
    Operation("sluice:spaces:list", _READS_OWN, "list the spaces of a project", about=LIST),
    Operation("sluice:spaces:list_all", _ADMIN, "list the spaces of everybody"),
    Operation("sluice:spaces:show", _READS_OWN, "show a space", about=THING),
    Operation("sluice:spaces:metrics", _ADMIN, "give Prometheus what spaces hold and cost"),
    Operation("sluice:permissions:show", "@", "ask what one may do oneself; everybody with a token"),
    Operation("sluice:schema:show", "@", "describe this API; everybody with a token"),
)

#: By name, those of operations alone.
BY_NAME: Final[Mapping[str, Operation]] = {one.name: one for one in OPERATIONS}
