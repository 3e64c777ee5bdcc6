"""The dashboards: one package each, and in it one package for each panel."""
