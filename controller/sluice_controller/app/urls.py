"""All resources."""

from __future__ import annotations

from sluice_controller.api.routes import make_urlpatterns

urlpatterns = make_urlpatterns()

handler400 = "sluice_controller.errors.bad_request"
handler403 = "sluice_controller.errors.forbidden"
handler404 = "sluice_controller.errors.not_found"
handler500 = "sluice_controller.errors.server_error"
