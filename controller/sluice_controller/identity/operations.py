"""The table of ``sluice_controller.identity.rules``: every operation, who may do it by default, and the calls it
stands for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

NOTHING: Final = "nothing"
THING: Final = "thing"
LIST: Final = "list"


@dataclass(frozen=True, slots=True)
class Operation:
    """One rule of its own; ``calls`` are ``METHOD /path``."""

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
_WRITES_OWN: Final = "rule:admin or (role:member and rule:own and rule:in_container and rule:self_service)"

#: What the rules of operations are made of.
PARTS: Final = (
    Operation("admin", "role:admin", "administrators of the whole cluster"),
    Operation("own", "project_id:%(project_id)s", "the thing is in the account of the token's project"),
    Operation("in_container", "'container':%(level)s or 'object':%(level)s", "it is about one container or object"),
    Operation("self_service", "'True':%(self_service)s", "all that it sets or deletes is marked self-service"),
)

OPERATIONS: Final = (
    Operation("sluice:policies:list", _READS_OWN, "list policies", ("GET /policies",), LIST),
    Operation("sluice:policies:list_all", _ADMIN, "list the policies of everybody"),
    Operation("sluice:policies:create", _WRITES_OWN, "create policies", ("POST /policies",), THING),
    Operation("sluice:policies:check", _READS_OWN, "check sentences", ("POST /policies/check",), THING),
    Operation("sluice:policies:show", _READS_OWN, "show a policy", ("GET /policies/{policy_id}",), THING),
    Operation(
        "sluice:policies:update",
        _WRITES_OWN,
        "give a policy another text, or switch it on or off",
        ("PUT /policies/{policy_id}",),
        THING,
    ),
    Operation(
        "sluice:policies:firings",
        _READS_OWN,
        "show what a policy's actor did",
        ("GET /policies/{policy_id}/firings",),
        THING,
    ),
    Operation("sluice:policies:delete", _WRITES_OWN, "delete a policy", ("DELETE /policies/{policy_id}",), THING),
    Operation("sluice:nodes:list", _ADMIN, "list nodes", ("GET /nodes",)),
    Operation("sluice:nodes:show", _ADMIN, "show a node", ("GET /nodes/{node}",)),
    Operation("sluice:nodes:forget", _ADMIN, "forget a node", ("DELETE /nodes/{node}",)),
    Operation("sluice:nodes:adopt", _ADMIN, "tell nodes to take the current history", ("POST /nodes/adopt",)),
    Operation("sluice:filters:list", _READER, "list filters", ("GET /filters", "GET /registry/filters")),
    Operation("sluice:activations:register", _ADMIN, "name the service of a filter", ("POST /registry/filters",)),
    Operation("sluice:activations:update", _ADMIN, "name another service", ("PUT /registry/filters/{keyword}",)),
    Operation("sluice:activations:delete", _ADMIN, "our own call again", ("DELETE /registry/filters/{keyword}",)),
    Operation(
        "sluice:deployments:list",
        _READS_OWN,
        "list what is deployed at a target",
        ("GET /filters/{target}/deploy", "GET /filters/dependencies/{target}/deploy"),
        THING,
    ),
    Operation(
        "sluice:deployments:deploy", _WRITES_OWN, "deploy a filter", ("PUT /filters/{target}/deploy/{keyword}",), THING
    ),
    Operation(
        "sluice:deployments:undeploy",
        _WRITES_OWN,
        "take a deployment back",
        ("PUT /filters/{target}/undeploy/{keyword}",),
        THING,
    ),
    Operation("sluice:dependencies:list", _READER, "list dependencies", ("GET /filters/dependencies",)),
    Operation("sluice:dependencies:show", _READER, "show one", ("GET /filters/dependencies/{dependency}",)),
    Operation("sluice:dependencies:create", _ADMIN, "describe a dependency", ("POST /filters/dependencies",)),
    Operation("sluice:dependencies:update", _ADMIN, "describe it anew", ("PUT /filters/dependencies/{dependency}",)),
    Operation("sluice:dependencies:delete", _ADMIN, "forget one", ("DELETE /filters/dependencies/{dependency}",)),
    Operation("sluice:dependencies:upload", _ADMIN, "upload data", ("PUT /filters/dependencies/{dependency}/data",)),
    Operation(
        "sluice:dependencies:download", _ADMIN, "download data", ("GET /filters/dependencies/{dependency}/data",)
    ),
    Operation(
        "sluice:dependencies:deploy",
        _ADMIN,
        "attach a dependency to filters",
        ("PUT /filters/dependencies/{target}/deploy/{dependency}",),
    ),
    Operation(
        "sluice:dependencies:undeploy",
        _ADMIN,
        "detach a dependency from filters",
        ("PUT /filters/dependencies/{target}/undeploy/{dependency}",),
    ),
    Operation("sluice:groups:list", _ADMIN, "list groups", ("GET /registry/gtenants", "GET /registry/gcontainers")),
    Operation(
        "sluice:groups:show",
        _ADMIN,
        "show a group and its members",
        (
            "GET /registry/gtenants/{group}",
            "GET /registry/gtenants/{group}/tenants",
            "GET /registry/gtenants/{group}/tenants/{member}",
            "GET /registry/gcontainers/{group}",
            "GET /registry/gcontainers/{group}/containers",
            "GET /registry/gcontainers/{group}/containers/{member}",
        ),
    ),
    Operation(
        "sluice:groups:create", _ADMIN, "make a group", ("POST /registry/gtenants", "POST /registry/gcontainers")
    ),
    Operation(
        "sluice:groups:update",
        _ADMIN,
        "change the members of a group",
        (
            "PUT /registry/gtenants/{group}",
            "PUT /registry/gtenants/{group}/tenants/{member}",
            "DELETE /registry/gtenants/{group}/tenants/{member}",
            "PUT /registry/gcontainers/{group}",
            "PUT /registry/gcontainers/{group}/containers/{member}",
            "DELETE /registry/gcontainers/{group}/containers/{member}",
        ),
    ),
    Operation(
        "sluice:groups:delete",
        _ADMIN,
        "forget a group",
        ("DELETE /registry/gtenants/{group}", "DELETE /registry/gcontainers/{group}"),
    ),
    Operation("sluice:aliases:list", _READER, "list aliases", ("GET /registry/aliases",)),
    Operation("sluice:aliases:show", _READER, "show an alias", ("GET /registry/aliases/{alias}",)),
    Operation("sluice:aliases:create", _ADMIN, "make an alias", ("POST /registry/aliases",)),
    Operation("sluice:aliases:update", _ADMIN, "change an alias", ("PUT /registry/aliases/{alias}",)),
    Operation("sluice:aliases:delete", _ADMIN, "forget an alias", ("DELETE /registry/aliases/{alias}",)),
    Operation("sluice:stereotypes:list", _READER, "list stereotypes", ("GET /stereotypes",)),
    Operation("sluice:stereotypes:show", _READER, "show a stereotype", ("GET /stereotypes/{stereotype}",)),
    Operation("sluice:stereotypes:create", _ADMIN, "make a stereotype", ("POST /stereotypes",)),
    Operation("sluice:stereotypes:update", _ADMIN, "change a stereotype", ("PUT /stereotypes/{stereotype}",)),
    Operation("sluice:stereotypes:delete", _ADMIN, "forget a stereotype", ("DELETE /stereotypes/{stereotype}",)),
    Operation(
        "sluice:stereotypes:targets",
        _ADMIN,
        "list where a stereotype is applied",
        ("GET /stereotypes/{stereotype}/tenants",),
    ),
    Operation(
        "sluice:stereotypes:applied",
        f"{_READS_OWN} or (rule:own and role:stereotype-%(stereotype)s)",
        "show what a stereotype has set for a target",
        ("GET /stereotypes/{stereotype}/tenants/{target}",),
        THING,
    ),
    Operation(
        "sluice:stereotypes:apply",
        _APPLIES,
        "apply a stereotype to a target",
        ("PUT /stereotypes/{stereotype}/tenants/{target}",),
        THING,
    ),
    Operation(
        "sluice:stereotypes:take_back",
        _APPLIES,
        "take back what a stereotype has set",
        ("DELETE /stereotypes/{stereotype}/tenants/{target}",),
        THING,
    ),
    Operation(
        "sluice:filters:show",
        _READER,
        "show a registered filter",
        ("GET /filters/{keyword}", "GET /registry/filters/{keyword}"),
    ),
    Operation("sluice:filters:register", _ADMIN, "register a filter", ("POST /filters",)),
    Operation("sluice:filters:update", _ADMIN, "describe a filter anew", ("PUT /filters/{keyword}",)),
    Operation("sluice:filters:unregister", _ADMIN, "forget a filter", ("DELETE /filters/{keyword}",)),
    Operation("sluice:filters:upload", _ADMIN, "upload a filter's code", ("PUT /filters/{keyword}/data",)),
    Operation("sluice:filters:download", _ADMIN, "download a filter's code", ("GET /filters/{keyword}/data",)),
    Operation(
        "sluice:filters:rollback", _ADMIN, "give a filter an earlier code", ("POST /filters/{keyword}/rollback",)
    ),
    Operation(
        "sluice:filters:native",
        _ADMIN,
        "touch a filter that runs with all rights of Swift's processes; asked besides the rule of the call",
        ("POST /filters", "PUT /filters/{keyword}", "PUT /filters/{keyword}/data", "POST /filters/{keyword}/rollback"),
    ),
    Operation("sluice:metrics:list", _READER, "list metrics", ("GET /registry/metrics",)),
    Operation("sluice:metrics:show", _READER, "show a metric", ("GET /registry/metrics/{metric}",)),
    Operation("sluice:metrics:register", _ADMIN, "register a metric", ("POST /registry/metrics",)),
    Operation("sluice:metrics:update", _ADMIN, "describe a metric anew", ("PUT /registry/metrics/{metric}",)),
    Operation("sluice:metrics:delete", _ADMIN, "forget a metric", ("DELETE /registry/metrics/{metric}",)),
    Operation(
        "sluice:metrics:upload",
        _ADMIN,
        "upload a metric's code, which runs with all rights of Swift's proxies",
        ("PUT /registry/metrics/{metric}/data",),
    ),
    Operation("sluice:metrics:download", _ADMIN, "download a metric's code", ("GET /registry/metrics/{metric}/data",)),
    Operation("sluice:metrics:start", _ADMIN, "have a metric measured", ("POST /registry/metrics/{metric}/start",)),
    Operation("sluice:metrics:stop", _ADMIN, "measure it no more", ("POST /registry/metrics/{metric}/stop",)),
    Operation(
        "sluice:metrics:rollback",
        _ADMIN,
        "give a metric an earlier code",
        ("POST /registry/metrics/{metric}/rollback",),
    ),
    Operation(
        "sluice:metrics:instances",
        _ADMIN,
        "show which nodes measure a metric",
        ("GET /registry/metrics/{metric}/instances",),
    ),
    Operation("sluice:controllers:list", _ADMIN, "list controllers", ("GET /controllers",)),
    Operation("sluice:controllers:show", _ADMIN, "show a controller", ("GET /controllers/{controller}",)),
    Operation("sluice:controllers:delete", _ADMIN, "forget a controller", ("DELETE /controllers/{controller}",)),
    Operation(
        "sluice:controllers:upload",
        _ADMIN,
        "upload a controller's code, which runs with all rights of the actor hosts",
        ("PUT /controllers/{controller}/data",),
    ),
    Operation(
        "sluice:controllers:download",
        _ADMIN,
        "download a controller's code",
        ("GET /controllers/{controller}/data",),
    ),
    Operation("sluice:controllers:start", _ADMIN, "start a controller", ("POST /controllers/{controller}/start",)),
    Operation(
        "sluice:controllers:stop",
        _ADMIN,
        "stop a controller and take back what it set",
        ("POST /controllers/{controller}/stop",),
    ),
    Operation(
        "sluice:controllers:rollback",
        _ADMIN,
        "give a controller an earlier code",
        ("POST /controllers/{controller}/rollback",),
    ),
    Operation(
        "sluice:controllers:instances",
        _ADMIN,
        "show which actor host runs a controller",
        ("GET /controllers/{controller}/instances",),
    ),
    Operation("sluice:terms:list", _READER, "list coined terms", ("GET /registry/terms",)),
    Operation("sluice:terms:show", _READER, "show a coined term", ("GET /registry/terms/{term}",)),
    Operation("sluice:terms:create", _ADMIN, "coin a term", ("POST /registry/terms",)),
    Operation("sluice:terms:update", _ADMIN, "change a coined term", ("PUT /registry/terms/{term}",)),
    Operation("sluice:terms:delete", _ADMIN, "forget a coined term", ("DELETE /registry/terms/{term}",)),
    Operation("sluice:effective:show", _READS_OWN, "show what is in force for a request", ("GET /effective",), THING),
    Operation("sluice:changes:list", _ADMIN, "list changes", ("GET /changes",)),
    Operation("sluice:changes:show", _ADMIN, "show a change", ("GET /changes/{epoch}",)),
    Operation(
        "sluice:changes:rollback", _ADMIN, "go back to an earlier configuration", ("POST /changes/{epoch}/rollback",)
    ),
    Operation("sluice:configuration:export", _ADMIN, "export the configuration", ("GET /export",)),
    Operation("sluice:configuration:import", _ADMIN, "replace the configuration", ("PUT /import",)),
    Operation(
        "sluice:locality:show",
        _ADMIN,
        "show where an object's replicas or fragments are",
        ("GET /locality/{account}/{container}/{object_name}",),
    ),
    Operation("sluice:placements:list", _ADMIN, "list where new containers of tenants go", ("GET /placements",)),
    Operation(
        "sluice:placements:show", _ADMIN, "show where a tenant's new containers go", ("GET /placements/{account}",)
    ),
    Operation(
        "sluice:placements:update", _ADMIN, "say where a tenant's new containers go", ("PUT /placements/{account}",)
    ),
    Operation(
        "sluice:placements:delete",
        _ADMIN,
        "leave a tenant's new containers to Swift's default",
        ("DELETE /placements/{account}",),
    ),
    Operation(
        "sluice:containers:create",
        _ADMIN,
        "create a container on a storage policy",
        ("PUT /containers/{account}/{container}",),
    ),
    Operation(
        "sluice:bandwidth:show",
        _ADMIN,
        "show what object servers give to tenants",
        ("GET /bw", "GET /bw/osinfo", "GET /bw/{account}"),
    ),
    Operation(
        "sluice:bandwidth:set",
        _ADMIN,
        "let each object server give a tenant so much",
        ("PUT /bw/{account}/{value}", "PUT /bw/{account}/{policy}/{value}"),
    ),
    Operation(
        "sluice:bandwidth:clear",
        _ADMIN,
        "take such values back",
        ("PUT /bw/clear", "PUT /bw/clear/{account}", "PUT /bw/clear/{account}/{policy}"),
    ),
    Operation("sluice:bandwidth:flows", _READS_OWN, "list what tenants get and move", ("GET /bw/flows",), LIST),
    Operation("sluice:bandwidth:flows_all", _ADMIN, "list what all tenants get and move"),
    Operation("sluice:bandwidth:nodes", _ADMIN, "list what nodes can and do move", ("GET /bw/nodes",)),
    Operation("sluice:bandwidth:parts", _ADMIN, "list where tenants move what", ("GET /bw/parts",)),
    Operation("sluice:bandwidth:devices", _ADMIN, "list what devices move", ("GET /bw/devices",)),
    Operation(
        "sluice:bandwidth:metrics", _ADMIN, "give Prometheus what tenants get and move, and where", ("GET /bw/metrics",)
    ),
    Operation("sluice:slos:list", _READS_OWN, "list service level objectives", ("GET /bw/slo",), LIST),
    Operation("sluice:slos:list_all", _ADMIN, "list the service level objectives of everybody"),
    Operation(
        "sluice:slos:show",
        _READS_OWN,
        "show a service level objective",
        ("GET /bw/slo/{account}/{name}", "GET /bw/slo/{account}/{name}/{policy}"),
        THING,
    ),
    Operation(
        "sluice:slos:set",
        _ADMIN,
        "promise a tenant something, or hold it to something",
        ("PUT /bw/slo/{account}/{name}", "PUT /bw/slo/{account}/{name}/{policy}"),
    ),
    Operation(
        "sluice:slos:delete",
        _ADMIN,
        "take a service level objective back",
        ("DELETE /bw/slo/{account}/{name}", "DELETE /bw/slo/{account}/{name}/{policy}"),
    ),
    Operation("sluice:schema:show", "@", "describe this API; everybody with a token", ("GET /schema",)),
)

#: By name, those of operations alone.
BY_NAME: Final[Mapping[str, Operation]] = {one.name: one for one in OPERATIONS}
