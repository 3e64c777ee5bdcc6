"""The dashboard of projects; needs ``_6000_sluice_common.py``."""

DASHBOARD = "sluice_project"
ADD_INSTALLED_APPS = ["sluice_dashboard.content.sluice_project"]
