"""The dashboard of administrators; needs ``_6000_sluice_common.py``."""

DASHBOARD = "sluice"
ADD_INSTALLED_APPS = ["sluice_dashboard.content.sluice"]
