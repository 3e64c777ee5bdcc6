"""Django's settings: constants, and ``SLUICE``, the one object built from our options.

There is no SQL database, no session and no user model: Redis is the metadata store, and Keystone or a
static token authenticates callers.
"""

from __future__ import annotations

from sluice_controller.app.logs import logging_settings
from sluice_controller.config import Config

SLUICE = Config.from_environment()

DEBUG = False
# No answer contains Host, and a TLS proxy in front of the API may pass on its own.
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "sluice_controller.app.urls"
INSTALLED_APPS = ["rest_framework", "drf_spectacular", "sluice_controller.app.apps.ControllerConfig"]
MIDDLEWARE = [
    "sluice_controller.app.middleware.RequestIdMiddleware",
    "sluice_controller.app.middleware.BodyLimitMiddleware",
]
DATABASES: dict[str, object] = {}
APPEND_SLASH = False
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
DATA_UPLOAD_MAX_MEMORY_SIZE = SLUICE.body_limit

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["sluice_controller.api.authentication.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["sluice_controller.api.permissions.RulePermission"],
    "DEFAULT_PARSER_CLASSES": ["sluice_controller.api.parsers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "sluice_controller.errors.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
    # `format` is an unknown parameter like any other
    "URL_FORMAT_OVERRIDE": None,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Sluice controller",
    "DESCRIPTION": "Policies for OpenStack Swift: write a sentence, watch every node follow it.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "PolicyStateEnum": "sluice_controller.catalog.policy_cache.STATES",
        "NodeStateEnum": "sluice_controller.api.serializers.cluster.NODE_STATES",
        "HealthEnum": "sluice_controller.api.serializers.cluster.HEALTH",
        "PlaceEnum": "sluice_core.describe.PLACES",
        "ActionPlaceEnum": "sluice_core.describe.ALL_PLACES",
        "EnvironmentEnum": "sluice_core.describe.ENVIRONMENTS",
        "MetricInstanceEnum": "sluice_controller.code.rollout.METRIC_STATES",
        "ControllerStateEnum": "sluice_controller.code.controllers.STATES",
        "RewriteStateEnum": "sluice_rewrites.messages.STATES",
        "TierStateEnum": "sluice_controller.volumes.tiers.STATES",
        "VolumeOperationStateEnum": "sluice_controller.api.serializers.volumes.OPERATION_STATES",
        "MotifOperationStateEnum": "sluice_controller.api.serializers.motifs.OPERATION_STATES",
        "SpaceStateEnum": "sluice_controller.api.serializers.motifs.SPACE_STATES",
        "KindEnum": "sluice_core.describe.KINDS",
        "CandidateKindEnum": "sluice_dsl.completion.KINDS",
        "FabricEnum": "sluice_volumes.tiers.FABRICS",
    },
}

LOGGING = logging_settings(SLUICE.log_format, SLUICE.log_level)
