"""The dashboards: one package each, containing one package for each panel."""
