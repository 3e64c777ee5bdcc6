"""Templates, scripts and style sheets of both dashboards."""

FEATURE = "sluice_common"
ADD_INSTALLED_APPS = ["sluice_dashboard"]
ADD_SCSS_FILES = ["sluice_dashboard/scss/sluice.scss"]
