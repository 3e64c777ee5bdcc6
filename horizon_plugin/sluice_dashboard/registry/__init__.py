"""The panel *Registry*, which both dashboards have: groups, terms, aliases and stereotypes."""
