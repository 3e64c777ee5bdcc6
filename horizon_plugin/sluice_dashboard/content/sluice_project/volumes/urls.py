"""The pages of a project's volumes."""

from sluice_dashboard.volumes.urls import project_urls

urlpatterns = project_urls()
