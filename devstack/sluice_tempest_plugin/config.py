"""Options of ``tempest.conf`` that this plugin adds."""

from __future__ import annotations

from typing import Any, Final

from oslo_config import cfg

_INTERFACES: Final = ["public", "admin", "internal", "publicURL", "adminURL", "internalURL"]

service_option: Final = cfg.BoolOpt("sluice", default=True, help="Whether Sluice is expected to be available.")

sluice_group: Final = cfg.OptGroup(name="sluice", title="Software-defined storage service options")
SluiceGroup: Final[list[Any]] = [
    cfg.StrOpt("catalog_type", default="sluice", help="Catalog type of the service."),
    cfg.StrOpt(
        "region", default="", help="The region of the service. If empty, the value of identity.region is used instead."
    ),
    cfg.StrOpt("endpoint_type", default="publicURL", choices=_INTERFACES, help="The endpoint type of the service."),
    cfg.IntOpt("build_interval", default=1, help="Seconds between two looks at what is waited for."),
    cfg.IntOpt("build_timeout", default=60, help="Seconds to wait for a policy to be enforced, to fire or to end."),
    cfg.StrOpt("reseller_prefix", default="AUTH_", help="What Swift writes before a project's id in account names."),
]

sluice_feature_group: Final = cfg.OptGroup(name="sluice-feature-enabled", title="Enabled features of Sluice")
SluiceFeaturesGroup: Final[list[Any]] = [
    cfg.BoolOpt(
        "self_service",
        default=False,
        help="Whether the option self_service of the API names the filter compression, so that members may set it for "
        "containers of their own.",
    ),
    cfg.BoolOpt(
        "storage_network",
        default=False,
        help="Whether Tempest reaches the object servers at their addresses in Swift's rings, to look at what is "
        "stored there.",
    ),
    cfg.BoolOpt(
        "uploaded_code",
        default=False,
        help="Whether administrators may upload native filters to this cloud; its Swift processes then load them.",
    ),
]
