"""The panel *Registry* of both dashboards: groups, terms, aliases and stereotypes."""
