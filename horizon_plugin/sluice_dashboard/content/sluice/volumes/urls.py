"""All pages, also of pools."""

from sluice_dashboard.volumes.urls import admin_urls

urlpatterns = admin_urls()
